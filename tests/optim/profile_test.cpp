// What a profile tells about the training of a model.
#include <gtest/gtest.h>

#include "framework/core/profiler.h"
#include "framework/nn/linear.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/creation.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/unary.h"
#include "framework/optim/adam.h"
#include "framework/optim/clip.h"

namespace gs {
namespace {

struct Mlp : nn::Module {
  nn::Child<nn::Linear> first{*this, "first", 3, 4}, second{*this, "second", 4, 2};
  Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }
};

TEST(Profile, CountsTheOperationsOfAModelInBothDirections) {
  Mlp model;
  Adam optimizer(model);
  const Tensor x = randn({5, 3});
  const Tensor labels = Tensor::of<int32_t>({5}, {0, 1, 1, 0, 1});
  constexpr int kSteps = 3;
  start_profiling();
  for (int i = 0; i < kSteps; ++i) {
    cross_entropy(model(x), labels).mean().backward();
    clip_gradient_norm(model, 1);
    optimizer.step();
  }
  {
    const NoGrad no_grad;
    model(x);
  }
  const Profile profile = stop_profiling();
  const auto calls = [&](const char* name, Phase phase) { return profile.cost(name, phase).calls; };
  EXPECT_EQ(calls("linear", Phase::kForward), 2 * kSteps + 2);
  EXPECT_EQ(calls("linear", Phase::kBackward), 2 * kSteps);
  EXPECT_EQ(calls("relu", Phase::kForward), kSteps + 1);
  EXPECT_EQ(calls("relu", Phase::kBackward), kSteps);
  for (const char* name : {"cross_entropy", "loss mean"}) {
    EXPECT_EQ(calls(name, Phase::kForward), kSteps) << name;
    EXPECT_EQ(calls(name, Phase::kBackward), kSteps) << name;
  }
  EXPECT_EQ(calls("backward", Phase::kBackward), kSteps);
  EXPECT_EQ(calls("adam", Phase::kOther), kSteps);
  EXPECT_EQ(calls("clip_gradient_norm", Phase::kOther), kSteps);
  EXPECT_EQ(profile.operations.size(), 7u);
  EXPECT_GT(profile.cost("linear", Phase::kBackward).self, 0);
  // All of the backward pass is in one of its parts.
  int64_t parts = 0;
  for (const Profile::Operation& operation : profile.operations)
    parts += operation[Phase::kBackward].self;
  EXPECT_EQ(parts, profile.cost("backward", Phase::kBackward).total);
}

// One's own operation gets its backward time for nothing, the forward time by one line.
TEST(Profile, CountsOperationsOfUsers) {
  const auto twice = [](const Tensor& x) {
    const OperationTimer timer("twice");
    const Tensor y = (x * 2.0).detach();
    return record("twice", y.value(), {x},
                  [](const Array& dy) { return Gradients{(Tensor(dy) * 2.0).value()}; });
  };
  Tensor x = ones({4});
  x.set_needs_grad();
  start_profiling();
  const Tensor y = twice(x);
  y.backward(ones({4}));
  const Profile profile = stop_profiling();
  for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
    EXPECT_EQ(profile.cost("twice", phase).calls, 1);
    EXPECT_EQ(profile.cost("multiply", phase).calls, 1);
    EXPECT_EQ(profile.cost("twice", phase).total,
              profile.cost("twice", phase).self + profile.cost("multiply", phase).self);
  }
}

}  // namespace
}  // namespace gs
