#include "framework/ops/unary.h"

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

struct Case {
  std::string name;
  std::function<Tensor(const Tensor&)> function;
  double (*reference)(double);
  bool positive = false;  // the domain
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"relu", relu, [](double x) { return x > 0 ? x : 0; }},
      {"gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
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

template <typename T>
void expect_reference(const Case& test, const Shape& shape, double tolerance) {
  const Tensor x = inputs_of<T>(test, shape);
  const Tensor y = test.function(x);
  EXPECT_EQ(y.shape(), shape);
  EXPECT_EQ(y.dtype(), dtype_of<T>);
  std::vector<double> expected = x.values<double>();
  for (double& value : expected) value = test.reference(value);
  expect_near(y, expected, tolerance);
}

TEST(Unary, AgreesWithTheDefinition) {
  test::for_each_instruction_set([] {
    for (const Case& test : cases()) {
      SCOPED_TRACE(test.name);
      for (const Shape& shape : shapes()) {
        expect_reference<float>(test, shape, 2e-6);
        expect_reference<double>(test, shape, 1e-14);
      }
      expect_reference<float>(test, {9001}, 2e-6);
    }
  });
}

TEST(Unary, PassesGradcheckInEveryShape) {
  for (const Case& test : cases()) {
    for (const Shape& shape : shapes()) {
      const GradcheckResult result =
          gradcheck([&](const std::vector<Tensor>& in) { return test.function(in[0]); },
                    {inputs_of<double>(test, shape)});
      EXPECT_TRUE(result.passed) << test.name << " " << shape.text() << ": " << result.message;
      EXPECT_EQ(result.checked, shape.elements()) << test.name;
    }
  }
}

TEST(Unary, GradientsInSinglePrecisionAgree) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(test.name);
    const Shape shape{101};
    Tensor x = inputs_of<float>(test, shape), wide = Tensor(x.value().to(kFloat64));
    const Tensor dy = test::random_tensor<float>(shape, 4);
    x.set_needs_grad();
    wide.set_needs_grad();
    test.function(x).backward(dy);
    test.function(wide).backward(Tensor(dy.value().to(kFloat64)));
    expect_near(x.gradient(), wide.gradient().values<double>(), 1e-5);
  }
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

TEST(Unary, RefusesWhatIsNotFloating) {
  EXPECT_EQ(error_of([] { relu(Tensor(Array::zeros({2}, kInt32))); }),
            "relu: needs float32 or float64, got int32; cast it first");
  EXPECT_EQ(error_of([] { gelu(Tensor()); }),
            "gelu: got an undefined tensor; give it values first");
}

}  // namespace
}  // namespace gs
