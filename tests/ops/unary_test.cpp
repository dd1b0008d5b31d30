#include "framework/ops/unary.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  std::function<Tensor(const Tensor&)> function;
  double (*reference)(double);
  bool positive = false;  // the domain
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"negate", negate, [](double x) { return -x; }},
      {"exp", exp, [](double x) { return std::exp(x); }},
      {"log", log, [](double x) { return std::log(x); }, true},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, true},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, true},
      {"abs", abs, [](double x) { return x < 0 ? -x : x; }},
      {"square", square, [](double x) { return x * x; }},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", relu, [](double x) { return x > 0 ? x : 0; }},
      {"gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh", gelu_tanh,
       [](double x) {
         const double u = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
         return 0.5 * x * (1 + std::tanh(u));
       }},
      {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {"clamp", [](const Tensor& x) { return clamp(x, -1.5, 3); },
       [](double x) { return std::min(3.0, std::max(-1.5, x)); }},
  };
  return all;
}

// From -8 to 8 without 0, or their sizes for functions of positive numbers.
template <typename T>
Tensor inputs_of(const Case& test, const Shape& shape) {
  std::vector<T> values;
  for (const double x : test::random_numbers(shape.elements(), 3))
    values.push_back(static_cast<T>(test.positive ? std::abs(4 * x) + 0.01 : 4 * x + 0.001));
  return Tensor::of<T>(shape, values);
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{}, {1}, {7}, {3, 5}, {2, 3, 4}, {33}, {0}, {3, 0}};
  return all;
}

TEST(Unary, PassesEveryCheckInEveryShape) {
  test::for_each_instruction_set([] {
    for (const Case& test : cases()) {
      const test::Reference reference = [&](const std::vector<std::vector<double>>& inputs) {
        std::vector<double> expected;
        for (const double x : inputs[0]) expected.push_back(test.reference(x));
        return expected;
      };
      for (const Shape& shape : shapes()) {
        test::check_operation(
            test.name, [&](const std::vector<Tensor>& in) { return test.function(in[0]); },
            {inputs_of<float>(test, shape)}, reference);
      }
    }
  });
}

TEST(Unary, AgreesWithPyTorch) {
  using Inputs = test::FixtureInputs;
  using Fixture = test::Fixture;
  test::expect_pytorch_agrees({
      {"negate", [](const Inputs& in, const Fixture&) { return negate(in["x"]); }},
      {"exp", [](const Inputs& in, const Fixture&) { return exp(in["x"]); }},
      {"log", [](const Inputs& in, const Fixture&) { return log(in["x"]); }},
      {"sqrt", [](const Inputs& in, const Fixture&) { return sqrt(in["x"]); }},
      {"rsqrt", [](const Inputs& in, const Fixture&) { return rsqrt(in["x"]); }},
      {"abs", [](const Inputs& in, const Fixture&) { return abs(in["x"]); }},
      {"tanh", [](const Inputs& in, const Fixture&) { return tanh(in["x"]); }},
      {"sigmoid", [](const Inputs& in, const Fixture&) { return sigmoid(in["x"]); }},
      {"relu", [](const Inputs& in, const Fixture&) { return relu(in["x"]); }},
      {"gelu", [](const Inputs& in, const Fixture&) { return gelu(in["x"]); }},
      {"gelu_tanh", [](const Inputs& in, const Fixture&) { return gelu_tanh(in["x"]); }},
      {"silu", [](const Inputs& in, const Fixture&) { return silu(in["x"]); }},
      {"clamp", [](const Inputs& in,
                   const Fixture&) { return clamp(in["x"], in.option("low"), in.option("high")); }},
  });
}

TEST(Unary, NotANumberIsNeverHidden) {
  test::for_each_instruction_set([] {
    for (const Case& test : cases()) {
      for (const int64_t size : {1, 5, 16, 33})
        expect_near(test.function(Tensor(Array::full({size}, NAN, kFloat32))),
                    std::vector<double>(static_cast<size_t>(size), NAN), 0);
    }
  });
}

TEST(Unary, ReluAtZeroHasNoGradient) {
  Tensor x = Tensor::of<float>({5}, {-1, -0.0f, 0, 1e-30f, INFINITY});
  x.set_needs_grad();
  const Tensor y = relu(x);
  EXPECT_EQ(y.values<float>(), (std::vector<float>{0, 0, 0, 1e-30f, INFINITY}));
  y.backward(Tensor::of<float>({5}, {1, 2, 3, 4, 5}));
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{0, 0, 0, 4, 5}));
}

TEST(Unary, SpecialValues) {
  const Tensor x = Tensor::of<float>({6}, {0, 1, -1, INFINITY, -INFINITY, -1e30f});
  expect_near(exp(x), {1, M_E, 1 / M_E, INFINITY, 0, 0}, 1e-6);
  expect_near(log(x), {-INFINITY, 0, NAN, INFINITY, NAN, NAN}, 0);
  expect_near(sqrt(x), {0, 1, NAN, INFINITY, NAN, NAN}, 0);
  expect_near(rsqrt(x), {INFINITY, 1, NAN, 0, NAN, NAN}, 0);
  expect_near(sigmoid(x), {0.5, 0.7310585786, 0.2689414214, 1, 0, 0}, 1e-6);
  expect_near(clamp(x, -INFINITY, 2), {0, 1, -1, 2, -INFINITY, -1e30}, 1e-6);
  for (Tensor (*function)(const Tensor&) : {gelu, gelu_tanh, silu}) {
    Tensor large = Tensor::of<float>({2}, {1e30f, -1e30f});
    large.set_needs_grad();
    const Tensor y = function(large);
    EXPECT_EQ(y.values<float>(), (std::vector<float>{1e30f, 0}));
    y.backward(Tensor::of<float>({2}, {1, 1}));
    EXPECT_EQ(large.gradient().values<float>(), (std::vector<float>{1, 0}));
  }
}

TEST(Unary, GradientsAtKinks) {
  Tensor x = Tensor::of<double>({5}, {-2, -1, 0, 1, 2}).set_needs_grad();
  const Tensor ones(Array::full({5}, 1, kFloat64));
  clamp(x, -1, 1).backward(ones);
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{0, 1, 1, 1, 0}));
  x.clear_gradient();
  abs(x).backward(ones);
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{-1, -1, 0, 1, 1}));
}

TEST(Unary, RefusesWhatIsNotFloating) {
  EXPECT_EQ(error_of([] { relu(Tensor(Array::zeros({2}, kInt32))); }),
            "relu: needs float32 or float64, got int32; cast it first");
  EXPECT_EQ(error_of([] { gelu(Tensor()); }),
            "gelu: got an undefined tensor; give it values first");
  EXPECT_EQ(error_of([] { clamp(Tensor(Array::zeros({2}, kFloat32)), 2, 1); }),
            "clamp: the lower limit must not be above the upper one, got 2 and 1");
  EXPECT_EQ(error_of([] { clamp(Tensor(Array::zeros({2}, kFloat32)), NAN, 1); }),
            "clamp: the lower limit must not be above the upper one, got nan and 1");
}

}  // namespace
}  // namespace gs
