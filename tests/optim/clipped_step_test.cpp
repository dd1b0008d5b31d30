#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/backend/captured_steps.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduce.h"
#include "framework/ops/unary.h"
#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

// Steps that the device clips and counts by itself, against those that the host directs.
namespace gs {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const AdamConfig kConfig{.learning_rate = 0.1, .beta2 = 0.98, .weight_decay = 0.01};

// A weight that decays and a bias that does not.
struct Pair : nn::Module {
  explicit Pair(Device device)
      : weight(*this, "weight", Tensor::of<double>({3}, {1, -2, 0.5}).to(device)),
        bias(*this, "bias", Tensor::of<double>({1}, {3}).to(device), {.decay = false}) {}

  void set_gradients(const std::vector<double>& values) {
    const Device device = weight.tensor().device();
    weight->set_gradient(Tensor::of<double>({3}, {values[0], values[1], values[2]}).to(device));
    bias->set_gradient(Tensor::of<double>({1}, {values[3]}).to(device));
  }
  std::vector<double> values() const {
    std::vector<double> all = weight.tensor().values<double>();
    all.push_back(bias.tensor().values<double>()[0]);
    return all;
  }

  nn::Parameter weight, bias;
};

const std::vector<std::vector<double>> kGradients{
    {1, 2, 3, 4}, {0.1, -0.2, 0.05, 0}, {1, kNan, 0, 0}, {-3, 0.5, 7, -1}, {0.2, 0.2, 0.2, 0.2}};

double number(const Adam& adam, backend::StepNumber which) {
  return adam.numbers().values<double>()[static_cast<size_t>(which)];
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-13) << i;
}

TEST(ClippedStep, IsTheStepWithTheClipFactor) {
  test::for_each_device([](Device device) {
    Pair pair(device), expected(Device::cpu());
    Adam adam(pair, kConfig), by_host(expected, kConfig);
    double rate = 0.1;
    for (const std::vector<double>& gradients : kGradients) {
      pair.set_gradients(gradients);
      expected.set_gradients(gradients);
      adam.set_learning_rate(rate);
      by_host.set_learning_rate(rate);
      const double norm = gradient_norm(expected);
      by_host.step({.gradient_scale = clip_factor(norm, 2)});
      adam.clipped_step({.maximum_norm = 2});
      expect_near(pair.values(), expected.values());
      if (std::isfinite(norm)) {
        EXPECT_NEAR(number(adam, backend::kGradientNorm), norm, 1e-14);
      } else {
        EXPECT_TRUE(std::isnan(number(adam, backend::kGradientNorm)));
      }
      EXPECT_FALSE(pair.weight->gradient().defined());
      rate *= 0.7;
    }
    EXPECT_EQ(adam.steps(), 4);
    EXPECT_EQ(adam.skipped_steps(), 1);
  });
}

TEST(ClippedStep, AfterANormThatIsNotFiniteNothingMovesWhereItHalts) {
  test::for_each_device([](Device device) {
    Pair pair(device);
    Adam adam(pair, kConfig);
    std::vector<double> before;
    for (size_t i = 0; i < kGradients.size(); ++i) {
      if (i == 2) before = pair.values();
      pair.set_gradients(kGradients[i]);
      adam.clipped_step({.halts = true});
    }
    EXPECT_EQ(pair.values(), before);
    EXPECT_EQ(adam.steps(), 2);
    EXPECT_EQ(adam.skipped_steps(), 0);
    EXPECT_EQ(number(adam, backend::kHalted), 3);
    adam.resume();
    pair.set_gradients(kGradients[0]);
    adam.clipped_step({.halts = true});
    EXPECT_NE(pair.values(), before);
    EXPECT_EQ(adam.steps(), 3);
  });
}

TEST(ClippedStep, MixesWithTheOthersAndSurvivesRestoring) {
  test::for_each_device([](Device device) {
    Pair pair(device), expected(device);
    Adam adam(pair, kConfig), other(expected, kConfig);
    const auto step = [](Pair& model, Adam& optimizer, bool clipped) {
      model.set_gradients(kGradients[0]);
      clipped ? optimizer.clipped_step({}) : optimizer.step();
    };
    for (const bool clipped : {false, true, false, true, true}) {
      step(pair, adam, clipped);
      step(expected, other, false);
    }
    expect_near(pair.values(), expected.values());
    EXPECT_EQ(adam.steps(), 5);
    Adam resumed(pair, kConfig);
    resumed.restore(adam.state(), adam.steps());
    step(pair, resumed, true);
    step(expected, other, false);
    expect_near(pair.values(), expected.values());
    EXPECT_EQ(resumed.steps(), 6);
  });
}

TEST(ClippedStep, WithoutGradientsIsSkipped) {
  test::for_each_device([](Device device) {
    Pair pair(device);
    Adam adam(pair, kConfig);
    const std::vector<double> before = pair.values();
    adam.clipped_step({});
    EXPECT_EQ(adam.skipped_steps(), 1);
    pair.set_gradients(kGradients[0]);
    adam.clipped_step({});
    adam.clipped_step({});
    EXPECT_EQ(adam.skipped_steps(), 2);
    EXPECT_EQ(adam.steps(), 1);
    EXPECT_NE(pair.values(), before);
    EXPECT_EQ(test::error_of([&] { adam.clipped_step({.maximum_norm = 0}); }),
              "adam: the maximum norm must be above 0, got 0");
  });
}

// Learning rate, step count, norm and skips are those of each step in replays, too.
TEST(ClippedStep, RecordedIsTheSameBitForBit) {
  test::for_each_device([](Device device) {
    Pair pair(device), expected(device);
    Adam adam(pair, kConfig), eager(expected, kConfig);
    CapturedSteps steps(device);
    const Tensor weight = Tensor::of<double>({3}, {0, 0, 0}).to(device),
                 bias = Tensor::of<double>({1}, {0}).to(device);
    for (int i = 0; i < 10; ++i) {
      const std::vector<double>& gradients = kGradients[static_cast<size_t>(i) % 5];
      expected.set_gradients(gradients);
      Tensor(weight).assign(expected.weight->gradient());
      Tensor(bias).assign(expected.bias->gradient());
      const double rate = 0.1 / (1 + i);
      adam.set_learning_rate(rate);
      eager.set_learning_rate(rate);
      eager.clipped_step({.maximum_norm = 2});
      steps.run({}, [&] {
        pair.weight->set_gradient(weight);
        pair.bias->set_gradient(bias);
        adam.clipped_step({.maximum_norm = 2});
      });
      EXPECT_EQ(pair.values(), expected.values()) << i;
    }
    EXPECT_EQ(adam.steps(), 8);
    EXPECT_EQ(adam.skipped_steps(), 2);
    EXPECT_EQ(steps.replays(), device == Device::cpu() ? 0 : 9);
  });
}

// A step that the host directs cannot be recorded, and is not spoilt by a try.
TEST(ClippedStep, OthersRunAsTheyAreAmongRecordedSteps) {
  test::for_each_device([](Device device) {
    Pair pair(device), expected(device);
    Adam adam(pair, kConfig), eager(expected, kConfig);
    CapturedSteps steps(device);
    const auto step = [](Pair& model, Adam& optimizer) {
      (sum(square(model.weight)) + sum(square(model.bias))).backward();
      optimizer.step();
    };
    testing::internal::CaptureStderr();
    for (int i = 0; i < 4; ++i) {
      steps.run({}, [&] { step(pair, adam); });
      step(expected, eager);
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), device == Device::cpu());
    EXPECT_EQ(pair.values(), expected.values());
    EXPECT_EQ(adam.steps(), 4);
  });
}

// What is restored between two replays is what the next one goes on with.
TEST(ClippedStep, RecordedGoesOnAfterRestoring) {
  test::for_each_device([](Device device) {
    Pair pair(device), expected(device);
    Adam adam(pair, kConfig);
    CapturedSteps steps(device);
    const Tensor weight = Tensor::of<double>({3}, {1, 2, 3}).to(device),
                 bias = Tensor::of<double>({1}, {4}).to(device);
    const auto step = [&](Pair& model, Adam& optimizer) {
      model.weight->set_gradient(weight);
      model.bias->set_gradient(bias);
      optimizer.clipped_step({});
    };
    Adam eager(expected, kConfig);
    step(expected, eager);
    OptimizerState saved;
    for (const auto& [name, array] : eager.state()) saved[name] = array.clone();
    const std::vector<double> weights = expected.values();
    step(expected, eager);

    for (int i = 0; i < 4; ++i) steps.run({}, [&] { step(pair, adam); });
    pair.weight->assign(Tensor::of<double>({3}, {weights[0], weights[1], weights[2]}).to(device));
    pair.bias->assign(Tensor::of<double>({1}, {weights[3]}).to(device));
    adam.restore(saved, 1);
    steps.run({}, [&] { step(pair, adam); });
    EXPECT_EQ(pair.values(), expected.values());
    EXPECT_EQ(adam.steps(), 2);
    EXPECT_EQ(steps.replays(), device == Device::cpu() ? 0 : 4);
  });
}

}  // namespace
}  // namespace gs
