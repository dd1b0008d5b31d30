#include "models/recorded_steps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/optim/clip.h"
#include "tests/models/small_models.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using Results = std::vector<RecordedSteps::Result>;

// Batch i of a few that differ in all but their form.
Batch batch_of(int32_t i) {
  std::vector<std::vector<int32_t>> source, target;
  for (int32_t pair = 0; pair < 3 + i % 2; ++pair) {
    source.emplace_back(static_cast<size_t>(1 + (pair + i) % 7), 4 + (pair + i) % 9);
    target.emplace_back(static_cast<size_t>((pair * i) % 5), 4 + (2 * pair + i) % 7);
  }
  std::vector<int64_t> pairs;
  for (size_t pair = 0; pair < source.size(); ++pair) pairs.push_back(static_cast<int64_t>(pair));
  return make_batch(test::sequences(source), test::sequences(target), pairs);
}

// A model with dropout and all that changes with it.
struct Training {
  explicit Training(Device device, RecordedSteps::Config given = {})
      : config(given), transformer(test::small_transformer(5, with_dropout())) {
    transformer->to(device);
    transformer->train();
    // A large epsilon, since Adam blows up the last bits of gradients near 0.
    optimizer =
        std::make_unique<Adam>(*transformer, AdamConfig{.epsilon = 1e-3, .weight_decay = 0.01});
    average = std::make_unique<MovingAverage>(*transformer, 0.9);
    set_seed(1);
    restart();
  }
  static TransformerConfig with_dropout() {
    TransformerConfig config = test::small_config();
    config.encoder_layers = config.decoder_layers = 1;
    config.dropout = config.attention_dropout = config.activation_dropout = 0.2;
    return config;
  }
  void restart() {
    steps = std::make_unique<RecordedSteps>(*transformer, *optimizer, average.get(), config);
  }
  void start(int32_t i) { steps->start({batch_of(i)}, 0.01 / (1 + i)); }
  std::vector<float> weights() {
    std::vector<float> all;
    for (int i = 0; i < 2; ++i) {
      for (const auto& named : transformer->parameters()) {
        const std::vector<float> values = named.parameter->tensor().values<float>();
        all.insert(all.end(), values.begin(), values.end());
      }
      average->swap();
    }
    return all;
  }
  Tensor parameter() { return transformer->parameters().front().parameter->tensor(); }

  RecordedSteps::Config config;
  std::unique_ptr<Transformer> transformer;
  std::unique_ptr<Adam> optimizer;
  std::unique_ptr<MovingAverage> average;
  std::unique_ptr<RecordedSteps> steps;
};

TEST(RecordedSteps, BatchesOfTheTestHaveOneForm) {
  for (int32_t i = 0; i < 10; ++i)
    EXPECT_EQ(BatchForm::of(batch_of(i)), BatchForm::of(batch_of(0)));
}

// A replay gives the bits of a run that is not recorded: losses, norms, weights, averages, dropout.
TEST(RecordedSteps, ReplaysAreTheSameBitForBit) {
  test::for_each_device([](Device device) {
    constexpr int32_t kSteps = 10;
    Training recorded(device, {.label_smoothing = 0.1, .maximum_norm = 0.5, .most_ahead = kSteps});
    for (int32_t i = 0; i < kSteps; ++i) recorded.start(i);
    EXPECT_EQ(recorded.steps->pending(), kSteps);
    Results results;
    while (recorded.steps->pending() > 0) results.push_back(recorded.steps->wait());
    const std::vector<float> weights = recorded.weights();
    const RandomState random = default_generator().state();
    EXPECT_EQ(recorded.steps->replays(), device == Device::cpu() ? 0 : kSteps - 1);

    Training plain(device, recorded.config);
    for (int32_t i = 0; i < kSteps; ++i) {
      plain.restart();  // nothing is recorded for the first step
      plain.start(i);
      const RecordedSteps::Result result = plain.steps->wait();
      EXPECT_EQ(results[static_cast<size_t>(i)].loss, result.loss) << i;
      EXPECT_EQ(results[static_cast<size_t>(i)].gradient_norm, result.gradient_norm) << i;
      EXPECT_FALSE(result.skipped);
    }
    EXPECT_EQ(plain.steps->replays(), 0);
    EXPECT_EQ(plain.weights(), weights);
    EXPECT_EQ(default_generator().state(), random);
  });
}

// The steps are those that the host directs with the batch as it is.
TEST(RecordedSteps, AreStepsOverTheBatch) {
  test::for_each_device([](Device device) {
    Training recorded(device, {.label_smoothing = 0.1, .maximum_norm = 0.5});
    Results results;
    for (int32_t i = 0; i < 5; ++i) {
      recorded.start(i);
      results.push_back(recorded.steps->wait());
    }
    Training plain(device);
    for (int32_t i = 0; i < 5; ++i) {
      const Batch batch = batch_of(i);
      const std::vector<int32_t>& labels = batch.target_labels.tokens;
      const Transformer& transformer = *plain.transformer;
      const Loss loss = transformer.loss(
          batch.target_inputs, transformer.encode(batch.source),
          Tensor::of<int32_t>({static_cast<int64_t>(labels.size())}, labels).to(device),
          {.label_smoothing = 0.1});
      loss.mean().backward();
      const double norm = gradient_norm(transformer);
      plain.optimizer->set_learning_rate(0.01 / (1 + i));
      plain.optimizer->step({.gradient_scale = clip_factor(norm, 0.5)});
      EXPECT_NEAR(results[static_cast<size_t>(i)].loss, loss.sum.item(), 1e-4 * loss.sum.item());
      EXPECT_NEAR(results[static_cast<size_t>(i)].gradient_norm, norm, 1e-4 * norm);
    }
  });
}

TEST(RecordedSteps, AfterANormThatIsNotFiniteNothingMoves) {
  test::for_each_device([](Device device) {
    for (const bool halts : {true, false}) {
      Training training(device, {.halts = halts});
      for (int32_t i = 0; i < 3; ++i) {
        training.start(i);
        training.steps->wait();
      }
      const Tensor before = Tensor(training.parameter().value().clone());
      const Tensor broken =
          Tensor(Array::full(before.shape(), std::nan(""), before.dtype(), before.device()));
      training.parameter().assign(broken);
      training.start(3);
      training.parameter().assign(before);
      const std::vector<float> weights = training.weights();
      training.start(4);
      const RecordedSteps::Result bad = training.steps->wait(), next = training.steps->wait();
      EXPECT_TRUE(bad.skipped);
      EXPECT_FALSE(std::isfinite(bad.gradient_norm));
      EXPECT_TRUE(std::isfinite(next.gradient_norm));
      EXPECT_EQ(next.skipped, halts);
      EXPECT_EQ(training.weights() == weights, halts);
      EXPECT_EQ(training.optimizer->steps(), halts ? 3 : 4);
      EXPECT_EQ(training.average->updates(), halts ? 3 : 4);
    }
  });
}

TEST(RecordedSteps, WithoutRoomForItsResultNoStepStarts) {
  test::for_each_device([](Device device) {
    Training training(device, {.most_ahead = 1});
    EXPECT_EQ(training.steps->recorded(), 0);
    EXPECT_EQ(training.steps->replays(), 0);
    training.start(0);
    EXPECT_EQ(test::error_of([&] { training.start(1); }),
              "recorded steps: 1 results are under way, got one more step; take some out");
    EXPECT_EQ(training.optimizer->steps(), 1);
  });
}

TEST(RecordedSteps, TakeSeveralBatchesAndLargerOnes) {
  test::for_each_device([](Device device) {
    Training training(device);
    training.start(0);
    std::vector<Batch> many;
    for (int32_t i = 0; i < 6; ++i) many.push_back(batch_of(i));
    for (int i = 0; i < 3; ++i) training.steps->start(many, 0.001);
    Results results;
    while (training.steps->pending() > 0) results.push_back(training.steps->wait());
    ASSERT_EQ(results.size(), 4u);
    for (const RecordedSteps::Result& result : results) EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_GT(results[1].loss, results[0].loss);
    EXPECT_EQ(training.steps->recorded(), device == Device::cpu() ? 0 : 1);
  });
}

}  // namespace
}  // namespace gs
