#include "framework/nn/rms_norm.h"

#include <gtest/gtest.h>

#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_module;
using test::error_of;
using test::expect_near;
using test::expect_pytorch_module;
using test::FixtureInputs;
using test::random_tensor;

TEST(RmsNorm, AgreesWithPyTorch) {
  nn::RmsNorm norm(6);
  expect_pytorch_module("modules", "rms_norm", norm, [&](const FixtureInputs& inputs) {
    return std::map<std::string, Tensor>{{"output", norm(inputs["x"])}};
  });
}

TEST(RmsNorm, GradientsAreRight) {
  for (const Shape& shape : {Shape{7}, Shape{3, 7}, Shape{2, 1, 2, 7}}) {
    nn::RmsNorm norm(7);
    check_module(norm, [&](const std::vector<Tensor>& x) { return norm(x[0]); },
                 {random_tensor<double>(shape, 1)});
  }
}

// The mean square is 14/3: 1 / sqrt(14/3) = 0.4629100499.
TEST(RmsNorm, StartsWithAMeanSquareOf1) {
  const nn::RmsNorm norm(3, 0);
  expect_near(norm(Tensor::of<float>({3}, {1, -2, 3})), {0.4629100499, -0.9258200998, 1.3887301497},
              1e-6);
  EXPECT_EQ(norm.weight->values<float>(), std::vector<float>(3, 1));
}

TEST(RmsNorm, DoesNotDecay) {
  const nn::RmsNorm norm(3);
  for (const nn::NamedParameter& named : norm.parameters()) {
    EXPECT_FALSE(named.parameter->decays()) << named.path;
  }
}

TEST(RmsNorm, TakesNoRowsAndRefusesAnotherWidth) {
  nn::RmsNorm norm(3);
  const Tensor y = norm(Tensor::of<float>({0, 3}, {}));
  EXPECT_EQ(y.shape(), Shape({0, 3}));
  y.backward(y.detach());
  EXPECT_EQ(norm.weight->gradient().values<float>(), std::vector<float>(3));
  EXPECT_EQ(error_of([&] {
              norm(Tensor::of<float>({2}, {1, 2}));
            }),
            "rms_norm: weight must be [2] float32 on cpu, got [3] float32 on cpu");
  EXPECT_EQ(error_of([&] { norm(Tensor::of<float>({}, {1})); }),
            "rms_norm: needs at least one dimension, got a scalar");
  const nn::RmsNorm negative(3, -1);
  EXPECT_EQ(error_of([&] {
              negative(Tensor::of<float>({3}, {1, 2, 3}));
            }),
            "rms_norm: epsilon must be at least 0, got -1");
}

}  // namespace
}  // namespace gs
