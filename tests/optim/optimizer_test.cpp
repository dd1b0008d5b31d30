#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "framework/core/parallel.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reshape.h"
#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "framework/optim/sgd.h"
#include "tests/support/devices.h"
#include "tests/support/fixture.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

// A weight that decays and a bias that does not.
struct Pair : nn::Module {
  Pair(Tensor first, Tensor second)
      : weight(*this, "weight", std::move(first)),
        bias(*this, "bias", std::move(second), {.decay = false}) {}
  nn::Parameter weight, bias;
};

Tensor number(double value) { return Tensor::of<double>({1}, {value}); }

template <typename Optimizer>
void step(Optimizer& optimizer, Pair& pair, double gradient) {
  pair.weight->set_gradient(number(gradient));
  optimizer.step();
}

Tensor row_of(const test::FixtureArray& array, int64_t row, const Shape& shape) {
  const auto first = array.values.begin() + row * shape.elements();
  return Tensor::of<double>(shape, {first, first + shape.elements()});
}

template <typename Optimizer>
void expect_trajectory(const test::Fixture& fixture, Pair& pair, Optimizer& optimizer) {
  for (int64_t i = 0; i < 10; ++i) {
    for (nn::Parameter* parameter : {&pair.weight, &pair.bias}) {
      (*parameter)
          ->set_gradient(
              row_of(fixture.array("gradients/" + parameter->name()), i, (*parameter)->shape())
                  .to((*parameter)->device()));
    }
    optimizer.step();
    for (nn::Parameter* parameter : {&pair.weight, &pair.bias}) {
      const std::vector<double> actual = (*parameter)->values<double>();
      const std::vector<double> expected =
          row_of(fixture.array("trajectory/" + parameter->name()), i, (*parameter)->shape())
              .values<double>();
      for (size_t k = 0; k < actual.size(); ++k) {
        ASSERT_NEAR(actual[k], expected[k], 1e-10) << fixture.name() << " step " << i;
      }
    }
  }
}

void expect_pytorch_trajectories(Device device) {
  int cases = 0;
  const ParameterGroup all{.name = "all",
                           .selects = [](const nn::NamedParameter&) { return true; }};
  for (const test::Fixture& fixture : test::Fixture::load_all("optimizers")) {
    const test::FixtureArray weight = fixture.array("parameters/weight"),
                             bias = fixture.array("parameters/bias");
    Pair pair(Tensor::of<double>(weight.shape, weight.values),
              Tensor::of<double>(bias.shape, bias.values));
    pair.to(device);
    const double rate = fixture.number("options/learning_rate"),
                 decay = fixture.number("options/weight_decay");
    if (fixture.operation() == "sgd") {
      Sgd sgd(pair, {.learning_rate = rate,
                     .momentum = fixture.number("options/momentum"),
                     .nesterov = fixture.flag("options/nesterov"),
                     .weight_decay = decay,
                     .groups = {all}});
      expect_trajectory(fixture, pair, sgd);
    } else {
      Adam adam(pair, {.learning_rate = rate,
                       .beta1 = fixture.number("options/beta1"),
                       .beta2 = fixture.number("options/beta2"),
                       .epsilon = fixture.number("options/epsilon"),
                       .weight_decay = decay,
                       .decoupled_decay = fixture.operation() == "adamw",
                       .groups = {all}});
      expect_trajectory(fixture, pair, adam);
    }
    ++cases;
  }
  EXPECT_EQ(cases, 12);
}

TEST(Optimizers, FollowPyTorch) { test::for_each_device(expect_pytorch_trajectories); }

// tensorflow/tensorflow#35102, pytorch/pytorch#41477: where epsilon stands in Adam.
TEST(Adam, EpsilonIsOutsideOfTheCorrectedRoot) {
  Pair pair(number(0), number(0));
  Adam adam(pair, {.learning_rate = 1});
  step(adam, pair, 1e-8);
  EXPECT_NEAR(pair.weight->item(), -0.5, 1e-12);
}

// pytorch/pytorch#15792, #125215: moments and the step count must survive saving and loading.
TEST(Adam, GoesOnAfterRestoring) {
  const AdamConfig config{.learning_rate = 0.1, .beta2 = 0.98, .epsilon = 1e-9};
  Pair pair(number(1), number(0));
  Adam adam(pair, config);
  for (const double gradient : {1.0, -2.0, 3.0}) step(adam, pair, gradient);
  EXPECT_NEAR(pair.weight->item(), 0.902368106009, 1e-12);
  OptimizerState saved;
  for (const auto& [name, array] : adam.state()) saved[name] = array.clone();
  Pair other(number(pair.weight->item()), number(0));
  Adam resumed(other, config);
  resumed.restore(saved, adam.steps());
  step(resumed, other, 0.5);
  EXPECT_NEAR(other.weight->item(), 0.866827237022, 1e-12);
  EXPECT_EQ(resumed.steps(), 4);
  saved.erase("bias/first_moment");
  EXPECT_EQ(
      error_of([&] { resumed.restore(saved, 3); }),
      "optimizer: bias/first_moment is missing in the saved state; was it another optimizer?");
  EXPECT_EQ(resumed.steps(), 4);
}

// huggingface/transformers#4360: decay is decoupled, and biases and norms are not decayed.
TEST(Adam, DecayIsDecoupledAndSparesBiases) {
  Pair pair(number(1), number(1));
  Adam adam(pair, {.learning_rate = 0.1, .weight_decay = 0.1});
  pair.weight->set_gradient(number(0));
  pair.bias->set_gradient(number(0));
  adam.step();
  EXPECT_NEAR(pair.weight->item(), 0.99, 1e-15);
  EXPECT_EQ(pair.bias->item(), 1);
  EXPECT_EQ(adam.summary(),
            "without decay: 1 parameters, 1 elements, weight decay 0\n"
            "with decay: 1 parameters, 1 elements, weight decay 0.1\n");
}

// torch/torch7#716, torch/nn#613: a parameter under two names was stepped twice.
TEST(Sgd, TiedParametersMoveOnce) {
  Pair pair(number(1), number(5));
  pair.bias.tie(pair.weight);
  EXPECT_EQ(pair.parameters().size(), 1u);
  EXPECT_EQ(pair.named_parameters().size(), 2u);
  Sgd sgd(pair, {.learning_rate = 0.1});
  step(sgd, pair, 5);  // of 2 w + 3 w
  EXPECT_NEAR(pair.weight->item(), 0.5, 1e-15);
  EXPECT_EQ(pair.bias->item(), pair.weight->item());
}

TEST(Clip, ReturnsTheNormAndScales) {
  Pair pair(Tensor::of<float>({2}, {0, 0}), Tensor::of<float>({1}, {0}));
  pair.weight->set_gradient(Tensor::of<float>({2}, {3, 0}));
  pair.bias->set_gradient(Tensor::of<float>({1}, {4}));
  EXPECT_NEAR(clip_gradient_norm(pair, 10), 5, 1e-12);
  EXPECT_EQ(pair.bias->gradient().item(), 4);
  EXPECT_NEAR(clip_gradient_norm(pair, 1), 5, 1e-12);
  EXPECT_NEAR(pair.weight->gradient().values<float>()[0], 0.6, 1e-6);
  EXPECT_NEAR(pair.bias->gradient().item(), 0.8, 1e-6);
}

TEST(Clip, ANormThatIsNotFiniteMovesNothing) {
  Pair pair(number(1), number(2));
  Adam adam(pair);
  pair.weight->set_gradient(number(std::numeric_limits<double>::quiet_NaN()));
  pair.bias->set_gradient(number(1));
  EXPECT_TRUE(std::isnan(clip_gradient_norm(pair, 1)));
  adam.step();
  EXPECT_EQ(pair.weight->item(), 1);
  EXPECT_EQ(pair.bias->item(), 2);
  EXPECT_EQ(adam.steps(), 0);
  EXPECT_EQ(adam.skipped_steps(), 1);
}

// A model with many parameters of odd sizes, some longer than a block of the kernels.
struct Many : nn::Module {
  explicit Many(DType dtype) {
    for (const int64_t size : {1, 40'001, 0, 16'384, 7, 33, 50'000}) {
      const std::string name = std::to_string(all.size());
      const Tensor values = test::random_tensor<double>({size}, 1 + all.size());
      all.push_back(std::make_unique<nn::Parameter>(*this, name, Tensor(values.value().to(dtype))));
    }
  }
  void set_gradients(uint64_t seed) {
    for (const auto& parameter : all) {
      const Tensor values = test::random_tensor<double>((*parameter)->shape(), seed++);
      (*parameter)->set_gradient(Tensor(values.value().to((*parameter)->dtype())));
    }
  }
  std::vector<double> values() const {
    std::vector<double> values;
    for (const auto& parameter : all) {
      const std::vector<double> own = (*parameter)->values<double>();
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }
  std::vector<std::unique_ptr<nn::Parameter>> all;
};

template <typename Optimizer, typename Config>
void expect_scaled_steps_clip(const Config& config, DType dtype, double tolerance) {
  Many clipped(dtype), scaled(dtype);
  Optimizer first(clipped, config), second(scaled, config);
  for (uint64_t i = 0; i < 4; ++i) {
    clipped.set_gradients(100 * i);
    scaled.set_gradients(100 * i);
    const double maximum = i == 2 ? 1e9 : 2;  // the third is not clipped
    const double norm = clip_gradient_norm(clipped, maximum);
    EXPECT_EQ(gradient_norm(scaled), norm);
    first.step();
    second.step({.gradient_scale = clip_factor(norm, maximum)});
    EXPECT_FALSE(scaled.all[0]->tensor().gradient().defined());
  }
  const std::vector<double> expected = clipped.values(), actual = scaled.values();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < actual.size(); ++k) ASSERT_NEAR(actual[k], expected[k], tolerance);
}

TEST(Clip, AStepWithTheFactorIsAStepAfterClipping) {
  test::for_each_instruction_set([] {
    for (const auto& [dtype, tolerance] : {std::pair{kFloat32, 2e-6}, {kFloat64, 1e-14}}) {
      expect_scaled_steps_clip<Adam>(AdamConfig{.learning_rate = 0.1, .weight_decay = 0.1}, dtype,
                                     tolerance);
      expect_scaled_steps_clip<Adam>(
          AdamConfig{.learning_rate = 0.1, .weight_decay = 0.1, .decoupled_decay = false}, dtype,
          tolerance);
      expect_scaled_steps_clip<Sgd>(SgdConfig{.weight_decay = 0.1}, dtype, tolerance);
      expect_scaled_steps_clip<Sgd>(SgdConfig{.momentum = 0.9, .nesterov = true}, dtype, tolerance);
    }
  });
}

TEST(Clip, NormsAndStepsAreTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<double> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Many many(kFloat32);
    Adam adam(many);
    many.set_gradients(5);
    const double norm = gradient_norm(many);
    adam.step({.gradient_scale = clip_factor(norm, 1)});
    std::vector<double> all = many.values();
    all.push_back(norm);
    if (count == 1) first = all;
    EXPECT_EQ(all, first);
  }
  set_threads(before);
}

TEST(Clip, NormOfGradients) {
  Many many(kFloat32);
  EXPECT_EQ(gradient_norm(many), 0);
  many.set_gradients(5);
  double sum = 0;
  for (const auto& parameter : many.all) {
    for (const double value : (*parameter)->gradient().values<double>()) sum += value * value;
  }
  EXPECT_NEAR(gradient_norm(many), std::sqrt(sum), 1e-10 * std::sqrt(sum));
}

TEST(Clip, FactorIsOneUpToTheMaximum) {
  EXPECT_EQ(clip_factor(0, 1), 1);
  EXPECT_EQ(clip_factor(1, 1), 1);
  EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-7);
  EXPECT_EQ(clip_factor(4, INFINITY), 1);
  for (const double norm : {static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
    EXPECT_TRUE(std::isnan(clip_factor(norm, 1)));
    EXPECT_TRUE(std::isnan(clip_factor(norm, INFINITY)));
  }
}

TEST(Clip, AScaleThatIsNotFiniteMovesNothing) {
  const auto expect_skipped = [](auto make) {
    Pair pair(number(1), number(2));
    auto optimizer = make(pair);
    pair.weight->set_gradient(number(INFINITY));
    pair.bias->set_gradient(number(1));
    optimizer.step({.gradient_scale = clip_factor(gradient_norm(pair), 1)});
    EXPECT_EQ(pair.weight->item(), 1);
    EXPECT_EQ(pair.bias->item(), 2);
    EXPECT_FALSE(pair.bias->gradient().defined());
    EXPECT_EQ(optimizer.steps(), 0);
    EXPECT_EQ(optimizer.skipped_steps(), 1);
  };
  expect_skipped([](Pair& pair) { return Adam(pair); });
  expect_skipped([](Pair& pair) { return Sgd(pair); });
}

// pytorch/pytorch#18523: an optimizer step, or a write through a view, between forward and backward
// gave wrong gradients in silence.
TEST(Optimizers, AStepBeforeBackwardIsNoticed) {
  Pair pair(number(3), number(2));
  Adam adam(pair);
  const Tensor product = pair.weight.tensor() * pair.bias.tensor();
  step(adam, pair, 1);
  EXPECT_NE(error_of([&] { product.backward(); }).find("version 0 then and 1 now"),
            std::string::npos);
  EXPECT_FALSE(pair.weight->gradient().defined());
  const Tensor x = number(3).set_needs_grad();
  const Tensor y = x * 1.0, z = y * y;
  reshape(y.detach(), {1, 1}).add_in_place(Tensor::of<double>({1, 1}, {1}));
  EXPECT_NE(error_of([&] { z.backward(); }).find("was changed in place"), std::string::npos);
  EXPECT_FALSE(x.gradient().defined());
}

TEST(Optimizers, RefuseBadSettings) {
  Pair pair(number(1), number(1));
  EXPECT_EQ(error_of([&] { Adam(pair, {.beta1 = 1}); }),
            "adam: betas must be at least 0 and below 1, got 1 and 0.999");
  EXPECT_EQ(error_of([&] { Sgd(pair, {.nesterov = true}); }),
            "sgd: Nesterov's form needs a momentum above 0");
  EXPECT_EQ(error_of([&] { Adam(pair, {.groups = {}}); }),
            "optimizer: no group takes parameter weight; add one that takes the rest");
  EXPECT_EQ(error_of([&] { clip_gradient_norm(pair, 0); }),
            "clip_gradient_norm: the maximum must be above 0, got 0");
  EXPECT_EQ(error_of([&] { clip_factor(1, NAN); }),
            "clip_factor: the maximum must be above 0, got nan");
}

}  // namespace
}  // namespace gs
