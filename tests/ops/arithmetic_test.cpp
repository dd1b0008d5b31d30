#include "framework/ops/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/pytorch_operations.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;

struct Case {
  std::string name;
  std::function<Tensor(const Tensor&, const Tensor&)> tensors;
  std::function<Tensor(const Tensor&, double)> tensor_number;
  std::function<Tensor(double, const Tensor&)> number_tensor;
  std::function<double(double, double)> reference;
};

Case case_of(const std::string& name, Tensor (*tensors)(const Tensor&, const Tensor&),
             Tensor (*tensor_number)(const Tensor&, double),
             Tensor (*number_tensor)(double, const Tensor&), double (*reference)(double, double)) {
  return {name, tensors, tensor_number, number_tensor, reference};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      case_of("add", add, add, add, [](double a, double b) { return a + b; }),
      case_of("subtract", subtract, subtract, subtract, [](double a, double b) { return a - b; }),
      case_of("multiply", multiply, multiply, multiply, [](double a, double b) { return a * b; }),
      case_of("divide", divide, divide, divide, [](double a, double b) { return a / b; }),
      case_of("pow", pow, pow, pow, [](double a, double b) { return std::pow(a, b); }),
      case_of("maximum", maximum, maximum, maximum,
              [](double a, double b) { return a < b ? b : a; }),
      case_of("minimum", minimum, minimum, minimum,
              [](double a, double b) { return b < a ? b : a; }),
  };
  return all;
}

struct Pair {
  Shape a, b, y;
};
// Equal, numbers, rows, columns, both ways, missing and inner dimensions, longer than a tile,
// empty.
const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all{{{7}, {7}, {7}},
                                     {{}, {}, {}},
                                     {{3, 5}, {}, {3, 5}},
                                     {{3, 5}, {5}, {3, 5}},
                                     {{3, 1}, {3, 5}, {3, 5}},
                                     {{4, 1}, {1, 3}, {4, 3}},
                                     {{2, 1, 3}, {4, 1}, {2, 4, 3}},
                                     {{2, 1, 3, 1, 2}, {1, 3, 1, 4, 1}, {2, 3, 3, 4, 2}},
                                     {{1, 1}, {1}, {1, 1}},
                                     {{0, 3}, {3}, {0, 3}},
                                     {{1, 3}, {0, 1}, {0, 3}},
                                     {{2, 0, 1}, {1, 5}, {2, 0, 5}}};
  return all;
}

// The element of `x` that stands at an index of the larger shape.
double element_at(const Tensor& x, const Shape& shape, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int d = 1; d <= shape.rank(); ++d) {
    const int64_t place = index % shape[shape.rank() - d];
    index /= shape[shape.rank() - d];
    if (d > x.rank()) continue;
    const int64_t size = x.shape()[x.rank() - d];
    if (size != 1) offset += place * stride;
    stride *= size;
  }
  return x.values<double>()[static_cast<size_t>(offset)];
}

// Numbers in [0.25, 2.25): powers and quotients stay tame.
template <typename T>
Tensor positive_tensor(const Shape& shape, uint64_t seed) {
  std::vector<T> values;
  for (const double x : test::random_numbers(shape.elements(), seed))
    values.push_back(static_cast<T>(std::abs(x) + 0.25));
  return Tensor::of<T>(shape, values);
}

void check_case(const Case& test, const Pair& pair) {
  using Values = std::vector<std::vector<double>>;
  const Tensor a = positive_tensor<float>(pair.a, 1), b = positive_tensor<float>(pair.b, 2);
  EXPECT_EQ(test.tensors(a, b).shape(), pair.y);
  test::check_operation(
      test.name, [&](const std::vector<Tensor>& in) { return test.tensors(in[0], in[1]); }, {a, b},
      [&](const Values& in) {
        const Tensor x = Tensor::of(pair.a, in[0]), y = Tensor::of(pair.b, in[1]);
        std::vector<double> expected;
        for (int64_t i = 0; i < pair.y.elements(); ++i)
          expected.push_back(test.reference(element_at(x, pair.y, i), element_at(y, pair.y, i)));
        return expected;
      });
  test::check_operation(
      test.name + " with a number",
      [&](const std::vector<Tensor>& in) { return test.tensor_number(in[0], 1.375); }, {a},
      [&](const Values& in) {
        std::vector<double> expected;
        for (const double x : in[0]) expected.push_back(test.reference(x, 1.375));
        return expected;
      });
  test::check_operation(
      test.name + " of a number",
      [&](const std::vector<Tensor>& in) { return test.number_tensor(1.375, in[0]); }, {a},
      [&](const Values& in) {
        std::vector<double> expected;
        for (const double x : in[0]) expected.push_back(test.reference(1.375, x));
        return expected;
      });
}

TEST(Arithmetic, PassesEveryCheckInEveryShape) {
  test::for_each_instruction_set([] {
    for (const Case& test : cases())
      for (const Pair& pair : pairs()) check_case(test, pair);
  });
}

TEST(Arithmetic, PassesEveryCheckBeyondATile) {
  for (const Case& test : {cases()[1], cases()[3]}) {
    check_case(test, {{3, 701}, {701}, {3, 701}});  // rows that tiles cut
    check_case(test, {{1, 2049}, {2, 1}, {2, 2049}});
    check_case(test, {{1500, 1}, {2}, {1500, 2}});
  }
}

TEST(Arithmetic, AgreesWithPyTorch) {
  using Inputs = test::FixtureInputs;
  using Fixture = test::Fixture;
  test::expect_pytorch_agrees({
      {"add", [](const Inputs& in, const Fixture&) { return in["x"] + in["y"]; }},
      {"subtract", [](const Inputs& in, const Fixture&) { return in["x"] - in["y"]; }},
      {"multiply", [](const Inputs& in, const Fixture&) { return in["x"] * in["y"]; }},
      {"divide", [](const Inputs& in, const Fixture&) { return in["x"] / in["y"]; }},
      {"maximum", [](const Inputs& in, const Fixture&) { return maximum(in["x"], in["y"]); }},
      {"minimum", [](const Inputs& in, const Fixture&) { return minimum(in["x"], in["y"]); }},
      {"pow",
       [](const Inputs& in, const Fixture&) {
         return in.has_option("exponent") ? pow(in["x"], in.option("exponent"))
                                          : pow(in["x"], in["y"]);
       }},
  });
}

TEST(Arithmetic, OperatorsAreTheFunctions) {
  const Tensor a = Tensor::of<float>({2}, {6, -4}), b = Tensor::of<float>({2}, {2, 8});
  const auto values = [](const Tensor& x) { return x.values<float>(); };
  using Values = std::vector<float>;
  EXPECT_EQ(values(a + b), (Values{8, 4}));
  EXPECT_EQ(values(a + 1), (Values{7, -3}));
  EXPECT_EQ(values(1 + a), (Values{7, -3}));
  EXPECT_EQ(values(a - b), (Values{4, -12}));
  EXPECT_EQ(values(a - 1), (Values{5, -5}));
  EXPECT_EQ(values(1 - a), (Values{-5, 5}));
  EXPECT_EQ(values(a * b), (Values{12, -32}));
  EXPECT_EQ(values(a * 2), (Values{12, -8}));
  EXPECT_EQ(values(2 * a), (Values{12, -8}));
  EXPECT_EQ(values(a / b), (Values{3, -0.5f}));
  EXPECT_EQ(values(a / 2), (Values{3, -2}));
  EXPECT_EQ(values(12 / a), (Values{2, -3}));
  EXPECT_EQ(values(-a), (Values{-6, 4}));
}

// pytorch/pytorch#1787, #913: the gradient of a broadcast operand has the operand's shape.
TEST(Arithmetic, GradientsOfBroadcastOperandsAreSums) {
  Tensor a = Tensor::of<double>({4, 1}, {1, 2, 3, 4}).set_needs_grad();
  Tensor b = Tensor::of<double>({1, 3}, {10, 20, 30}).set_needs_grad();
  (a * b).backward(Tensor(Array::full({4, 3}, 1, kFloat64)));
  EXPECT_EQ(a.gradient().shape(), Shape({4, 1}));
  EXPECT_EQ(a.gradient().values<double>(), (std::vector<double>{60, 60, 60, 60}));
  EXPECT_EQ(b.gradient().shape(), Shape({1, 3}));
  EXPECT_EQ(b.gradient().values<double>(), (std::vector<double>{10, 10, 10}));

  a = Tensor::of<double>({2, 1, 3}, {0, 1, 2, 3, 4, 5}).set_needs_grad();
  b = Tensor::of<double>({4, 1}, {1, 2, 3, 4}).set_needs_grad();
  (a * b).backward(Tensor(Array::full({2, 4, 3}, 1, kFloat64)));
  EXPECT_EQ(a.gradient().values<double>(), std::vector<double>(6, 10));
  EXPECT_EQ(a.gradient().shape(), Shape({2, 1, 3}));
  EXPECT_EQ(b.gradient().values<double>(), std::vector<double>(4, 15));
  EXPECT_EQ(b.gradient().shape(), Shape({4, 1}));
}

TEST(Arithmetic, EqualOperandsOfMaximumShareTheGradient) {
  using Values = std::vector<float>;
  for (const bool largest : {true, false}) {
    Tensor a = Tensor::of<float>({3}, {1, 2, 3}), b = Tensor::of<float>({3}, {3, 2, 1});
    a.set_needs_grad();
    b.set_needs_grad();
    const Tensor y = largest ? maximum(a, b) : minimum(a, b);
    EXPECT_EQ(y.values<float>(), largest ? (Values{3, 2, 3}) : (Values{1, 2, 1}));
    y.backward(Tensor::of<float>({3}, {8, 4, 2}));
    const Values of_first{8, 2, 0}, of_last{0, 2, 2};
    EXPECT_EQ(a.gradient().values<float>(), largest ? of_last : of_first);
    EXPECT_EQ(b.gradient().values<float>(), largest ? of_first : of_last);
  }
}

TEST(Arithmetic, PowersOfZeroAndToZero) {
  Tensor a = Tensor::of<double>({4}, {0, 0, 2, -2}).set_needs_grad();
  Tensor b = Tensor::of<double>({4}, {0, 2, 0, 3}).set_needs_grad();
  const Tensor y = pow(a, b), ones(Array::full({4}, 1, kFloat64));
  EXPECT_EQ(y.values<double>(), (std::vector<double>{1, 0, 1, -8}));
  y.backward(ones);
  EXPECT_EQ(a.gradient().values<double>(), (std::vector<double>{0, 0, 0, 12}));
  expect_near(b.gradient(), {0, 0, std::log(2.0), NAN}, 1e-15);
  EXPECT_EQ(pow(a, 2).values<double>(), (std::vector<double>{0, 0, 4, 4}));
}

// The power of 2 is a product of its own.
TEST(Arithmetic, SquaresAreThePowersOfTwo) {
  const std::vector<float> values{-0.0f, 3, -1.7f, 1e-30f, 1e30f, INFINITY, -INFINITY, NAN};
  Tensor x = Tensor::of<float>({8}, values), other = x;
  x.set_needs_grad(), other.set_needs_grad();
  const Tensor twos(Array::full({8}, 2, kFloat32)), dy = Tensor::of<float>({8}, values);
  const Tensor square = pow(x, 2), power = pow(other, twos);
  square.backward(dy), power.backward(dy);
  for (const auto& [got, expected] : {std::pair{square, power}, {x.gradient(), other.gradient()}}) {
    for (size_t i = 0; i < values.size(); ++i) {
      const float a = got.values<float>()[i], b = expected.values<float>()[i];
      if (std::isnan(b))
        EXPECT_TRUE(std::isnan(a)) << values[i];
      else
        EXPECT_FLOAT_EQ(a, b) << values[i];
    }
  }
}

TEST(Arithmetic, NotANumberAndInfinityGoThrough) {
  test::for_each_instruction_set([] {
    const Tensor nan(Array::full({21}, NAN, kFloat32)), one(Array::full({21}, 1, kFloat32));
    const std::vector<double> expected(21, NAN);
    for (const Case& test : cases()) {
      if (test.name == "pow") continue;  // 1^NaN is 1
      SCOPED_TRACE(test.name);
      expect_near(test.tensors(nan, one), expected, 0);
      expect_near(test.tensors(one, nan), expected, 0);
      expect_near(test.tensor_number(nan, 1), expected, 0);
      expect_near(test.tensor_number(one, NAN), expected, 0);
      expect_near(test.number_tensor(1, nan), expected, 0);
    }
    const Tensor x = Tensor::of<float>({3}, {INFINITY, -INFINITY, 0});
    expect_near(x * 0, {NAN, NAN, 0}, 0);
    expect_near(x - x, {NAN, NAN, 0}, 0);
    expect_near(1 / x, {0, 0, INFINITY}, 0);
    expect_near(x + 1e30, {INFINITY, -INFINITY, 1e30}, 1e-6);
  });
}

TEST(Arithmetic, WholeNumbersStayWhole) {
  test::for_each_instruction_set([] {
    const Tensor a = Tensor::of<int32_t>({5}, {7, -3, 2147483647, 0, 46341});
    const Tensor b = Tensor::of<int32_t>({5}, {2, 5, 1, -2147483647 - 1, 46341});
    using Values = std::vector<int32_t>;
    EXPECT_EQ((a + b).dtype(), kInt32);
    EXPECT_EQ((a + b).values<int32_t>(), (Values{9, 2, -2147483647 - 1, -2147483647 - 1, 92682}));
    EXPECT_EQ((a - b).values<int32_t>(), (Values{5, -8, 2147483646, -2147483647 - 1, 0}));
    EXPECT_EQ((a * b).values<int32_t>(), (Values{14, -15, 2147483647, 0, -2147479015}));
    EXPECT_EQ(maximum(a, b).values<int32_t>(), (Values{7, 5, 2147483647, 0, 46341}));
    EXPECT_EQ(minimum(a, b).values<int32_t>(), (Values{2, -3, 1, -2147483647 - 1, 46341}));
    EXPECT_EQ((a * 2 - 1).values<int32_t>(), (Values{13, -7, -3, -1, 92681}));
  });
}

TEST(Arithmetic, KeepsOnlyWhatItsGradientsRead) {
  Tensor a = test::random_tensor<float>({3}, 1), b = test::random_tensor<float>({3}, 2);
  a.set_needs_grad();
  const Tensor dy = test::random_tensor<float>({3}, 3);
  const Tensor sum = a + b, product = a * b;
  a.detach().add_in_place(dy);
  sum.backward(dy);
  product.backward(dy);  // of a alone: it reads b alone
  const std::vector<double> y = dy.values<double>(), x = b.values<double>();
  expect_near(a.gradient(), {y[0] * (1 + x[0]), y[1] * (1 + x[1]), y[2] * (1 + x[2])}, 1e-6);
}

TEST(Arithmetic, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32));
  EXPECT_EQ(error_of([&] { add(x, Tensor(Array::zeros({2}, kFloat32))); }),
            "add: shapes do not broadcast, got [2, 3] and [2]");
  EXPECT_EQ(error_of([&] {
              multiply(x, Tensor(Array::zeros({2, 3}, kFloat64)));
            }),
            "multiply: the operands must have one type and device, got float32 on cpu and float64 "
            "on cpu; convert one");
  EXPECT_EQ(error_of([&] { x - Tensor(); }),
            "subtract: got an undefined tensor; give it values first");
  EXPECT_EQ(error_of([&] { Tensor() + 1; }), "add: got an undefined tensor; give it values first");
  const Tensor whole(Array::zeros({2}, kInt32)), truth(Array::zeros({2}, kBool));
  EXPECT_EQ(error_of([&] { whole / whole; }),
            "divide: needs float32 or float64, got int32; cast it first");
  EXPECT_EQ(error_of([&] { truth + truth; }),
            "add: needs float32, float64 or int32, got bool; cast it first");
  EXPECT_EQ(error_of([&] { whole + 0.5; }),
            "add: an int32 tensor takes whole numbers of 32 bits, got 0.5; cast it first");
}

}  // namespace
}  // namespace gs
