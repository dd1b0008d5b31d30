#include "framework/ops/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

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

template <typename T>
void expect_reference(const Case& test, const Pair& pair, double tolerance) {
  SCOPED_TRACE(test.name + " " + pair.a.text() + " " + pair.b.text());
  const Tensor a = positive_tensor<T>(pair.a, 1), b = positive_tensor<T>(pair.b, 2);
  const Tensor y = test.tensors(a, b);
  ASSERT_EQ(y.shape(), pair.y);
  ASSERT_EQ(y.dtype(), dtype_of<T>);
  std::vector<double> expected, with_number, of_number;
  for (int64_t i = 0; i < y.elements(); ++i)
    expected.push_back(test.reference(element_at(a, pair.y, i), element_at(b, pair.y, i)));
  expect_near(y, expected, tolerance);
  for (const double x : a.values<double>()) {
    with_number.push_back(test.reference(x, 1.25));
    of_number.push_back(test.reference(1.25, x));
  }
  expect_near(test.tensor_number(a, 1.25), with_number, tolerance);
  expect_near(test.number_tensor(1.25, a), of_number, tolerance);
}

TEST(Arithmetic, AgreesWithTheDefinitionInEveryShape) {
  test::for_each_instruction_set([] {
    for (const Case& test : cases()) {
      for (const Pair& pair : pairs()) {
        expect_reference<float>(test, pair, 1e-6);
        expect_reference<double>(test, pair, 1e-14);
      }
    }
  });
  // More than a tile, and rows that tiles cut.
  for (const Case& test : {cases()[1], cases()[3]}) {
    expect_reference<float>(test, {{5, 701}, {701}, {5, 701}}, 1e-6);
    expect_reference<float>(test, {{1, 2049}, {2, 1}, {2, 2049}}, 1e-6);
    expect_reference<float>(test, {{1500, 1}, {2}, {1500, 2}}, 1e-6);
  }
}

TEST(Arithmetic, PassesGradcheckInEveryShape) {
  for (const Case& test : cases()) {
    for (const Pair& pair : pairs()) {
      SCOPED_TRACE(test.name + " " + pair.a.text() + " " + pair.b.text());
      const Tensor a = positive_tensor<double>(pair.a, 1), b = positive_tensor<double>(pair.b, 2);
      const auto tensors = [&](const std::vector<Tensor>& in) {
        return test.tensors(in[0], in[1]);
      };
      const auto tensor_number = [&](const std::vector<Tensor>& in) {
        return test.tensor_number(in[0], 1.375);
      };
      const auto number_tensor = [&](const std::vector<Tensor>& in) {
        return test.number_tensor(1.375, in[0]);
      };
      for (const GradcheckResult& result :
           {gradcheck(tensors, {a, b}), gradcheck(tensor_number, {a}),
            gradcheck(number_tensor, {a})})
        EXPECT_TRUE(result.passed) << result.message;
    }
  }
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
