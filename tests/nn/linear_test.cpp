#include "framework/nn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_module;
using test::error_of;
using test::expect_pytorch_module;
using test::FixtureInputs;
using test::random_tensor;

TEST(Linear, AgreesWithPyTorch) {
  nn::Linear with(6, 7), without(6, 1, {.bias = false});
  expect_pytorch_module("modules", "linear", with, [&](const FixtureInputs& inputs) {
    return std::map<std::string, Tensor>{{"output", with(inputs["x"])}};
  });
  expect_pytorch_module("modules", "linear_without_bias", without,
                        [&](const FixtureInputs& inputs) {
                          return std::map<std::string, Tensor>{{"output", without(inputs["x"])}};
                        });
}

TEST(Linear, GradientsAreRight) {
  for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{1, 5}, Shape{2, 1, 3, 5}}) {
    nn::Linear linear(5, 3);
    check_module(linear, [&](const std::vector<Tensor>& x) { return linear(x[0]); },
                 {random_tensor<double>(shape, 1)});
  }
  nn::Linear one(1, 1, {.bias = false});
  check_module(one, [&](const std::vector<Tensor>& x) { return one(x[0]); },
               {random_tensor<double>({4, 1}, 2)});
}

TEST(Linear, StartsWithinXaviersBoundAndABiasOfZeros) {
  const nn::Linear linear(100, 50);
  EXPECT_EQ(linear.weight->shape(), Shape({50, 100}));  // (out, in)
  EXPECT_EQ(linear.bias->values<float>(), std::vector<float>(50));
  EXPECT_THAT(linear.weight->values<double>(),
              testing::Each(testing::AllOf(testing::Ge(-0.2001), testing::Le(0.2001))));
  EXPECT_NE(nn::Linear(4, 4).weight->values<float>(), nn::Linear(4, 4).weight->values<float>());
  EXPECT_FALSE(nn::Linear(2, 3, {.bias = false}).bias->defined());
}

TEST(Linear, TakesNoRowsAndNoFeatures) {
  nn::Linear linear(3, 2);
  const Tensor y = linear(Tensor::of<float>({0, 3}, {}));
  EXPECT_EQ(y.shape(), Shape({0, 2}));
  y.backward(y.detach());
  EXPECT_EQ(linear.weight->gradient().values<float>(), std::vector<float>(6));
  EXPECT_EQ(linear.bias->gradient().values<float>(), std::vector<float>(2));
  const nn::Linear empty(0, 2);
  EXPECT_EQ(empty(Tensor::of<float>({1, 0}, {})).values<float>(), std::vector<float>(2));
}

TEST(Linear, RefusesInputsThatDoNotFit) {
  const nn::Linear linear(3, 2);
  EXPECT_EQ(error_of([&] {
              linear(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
            }),
            "linear: the last size of the input must be 3, got [2, 2]; weights are (out, in), here "
            "[2, 3]");
  EXPECT_EQ(error_of([&] {
              linear(Tensor::of<double>({3}, {1, 2, 3}));
            }),
            "linear: input is float64 on cpu, weight float32 on cpu; convert one");
  EXPECT_NE(error_of([] { nn::Linear(-1, 2); }), "");
}

}  // namespace
}  // namespace gs
