#include "framework/nn/feed_forward.h"

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

TEST(FeedForward, AgreesWithPyTorch) {
  for (const char* activation : {"relu", "gelu"}) {
    nn::FeedForward layers(6, 7, {.activation = nn::parse_activation(activation)});
    expect_pytorch_module("modules", std::string("feed_forward_") + activation, layers,
                          [&](const FixtureInputs& inputs) {
                            return std::map<std::string, Tensor>{{"output", layers(inputs["x"])}};
                          });
  }
}

TEST(FeedForward, GradientsAreRight) {
  for (const auto activation : {nn::Activation::kRelu, nn::Activation::kGelu}) {
    for (const double dropout : {0.0, 0.3}) {
      nn::FeedForward layers(3, 9, {.activation = activation, .dropout = dropout});
      check_module(layers, [&](const std::vector<Tensor>& x) { return layers(x[0]); },
                   {random_tensor<double>({2, 4, 3}, 1)});
    }
  }
}

// Every position by itself.
TEST(FeedForward, TreatsAllPositionsAlike) {
  const nn::FeedForward layers(3, 5, {});
  const Tensor x = random_tensor<float>({4, 3}, 1);
  const std::vector<float> all = layers(x).values<float>(), values = x.values<float>();
  for (size_t row = 0; row < 4; ++row) {
    const Tensor one =
        Tensor::of<float>({3}, {values[3 * row], values[3 * row + 1], values[3 * row + 2]});
    const std::vector<float> y = layers(one).values<float>();
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(y[i], all[3 * row + i], 1e-6);
  }
  EXPECT_EQ(layers(Tensor::of<float>({0, 3}, {})).shape(), Shape({0, 3}));
}

TEST(FeedForward, DropsInnerActivationsInTrainingOnly) {
  nn::FeedForward layers(3, 50, {.dropout = 0.5});
  const Tensor x = random_tensor<float>({4, 3}, 1);
  EXPECT_NE(layers(x).values<float>(), layers(x).values<float>());
  layers.evaluate();
  EXPECT_EQ(layers(x).values<float>(), layers(x).values<float>());
}

// Without inner activations the second layer's bias is left.
TEST(FeedForward, DropsBetweenTheLayers) {
  nn::FeedForward layers(2, 5, {.dropout = 1});
  layers.second->bias->assign(Tensor::of<float>({2}, {3, 4}));
  EXPECT_EQ(layers(random_tensor<float>({2, 2}, 1)).values<float>(),
            (std::vector<float>{3, 4, 3, 4}));
}

TEST(FeedForward, KnowsItsActivations) {
  EXPECT_EQ(nn::parse_activation("relu"), nn::Activation::kRelu);
  EXPECT_EQ(nn::parse_activation("gelu"), nn::Activation::kGelu);
  EXPECT_EQ(error_of([] { nn::parse_activation("Relu"); }),
            "activation: unknown, got 'Relu'; use relu or gelu");
  EXPECT_EQ(error_of([] { nn::parse_activation(""); }),
            "activation: unknown, got ''; use relu or gelu");
  EXPECT_EQ(error_of([] { nn::FeedForward(3, 5, {.dropout = 2}); }),
            "dropout: the probability must be 0 to 1, got 2");
}

}  // namespace
}  // namespace gs
