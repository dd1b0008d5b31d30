#include "framework/nn/layer_norm.h"

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

TEST(LayerNorm, AgreesWithPyTorch) {
  nn::LayerNorm norm(6);
  expect_pytorch_module("modules", "layer_norm", norm, [&](const FixtureInputs& inputs) {
    return std::map<std::string, Tensor>{{"output", norm(inputs["x"])}};
  });
}

TEST(LayerNorm, GradientsAreRight) {
  for (const Shape& shape : {Shape{7}, Shape{3, 7}, Shape{2, 1, 2, 7}}) {
    nn::LayerNorm norm(7);
    check_module(norm, [&](const std::vector<Tensor>& x) { return norm(x[0]); },
                 {random_tensor<double>(shape, 1)});
  }
}

// Mean 2, variance 2/3: (1 - 2) / sqrt(2/3) = -1.2247448714.
TEST(LayerNorm, StartsWithMean0AndVariance1) {
  const nn::LayerNorm norm(3, 0);
  expect_near(norm(Tensor::of<float>({3}, {1, 2, 3})), {-1.2247448714, 0, 1.2247448714}, 1e-6);
  EXPECT_EQ(norm.weight->values<float>(), std::vector<float>(3, 1));
  EXPECT_EQ(norm.bias->values<float>(), std::vector<float>(3, 0));
}

TEST(LayerNorm, DoesNotDecay) {
  const nn::LayerNorm norm(3);
  for (const nn::NamedParameter& named : norm.parameters()) {
    EXPECT_FALSE(named.parameter->decays()) << named.path;
  }
}

TEST(LayerNorm, TakesNoRowsAndRefusesAnotherWidth) {
  nn::LayerNorm norm(3);
  const Tensor y = norm(Tensor::of<float>({0, 3}, {}));
  EXPECT_EQ(y.shape(), Shape({0, 3}));
  y.backward(y.detach());
  EXPECT_EQ(norm.weight->gradient().values<float>(), std::vector<float>(3));
  EXPECT_EQ(error_of([&] {
              norm(Tensor::of<float>({2}, {1, 2}));
            }),
            "layer_norm: weight must be [2] float32 on cpu, got [3] float32 on cpu");
  EXPECT_EQ(error_of([&] { norm(Tensor::of<float>({}, {1})); }),
            "layer_norm: needs at least one dimension, got a scalar");
  const nn::LayerNorm negative(3, -1);
  EXPECT_EQ(error_of([&] {
              negative(Tensor::of<float>({3}, {1, 2, 3}));
            }),
            "layer_norm: epsilon must be at least 0, got -1");
}

}  // namespace
}  // namespace gs
