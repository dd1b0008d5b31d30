// Trainings and translations on a CUDA device against those on the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "models/evaluation.h"
#include "models/translation_training.h"
#include "tests/models/small_models.h"
#include "tests/models/small_trainings.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::advance;
using test::bits_of;
using test::Figures;
using test::toy_split;
using test::with_dropout;

using TrainingOnCuda = test::CudaTest;

const Device kCpu = Device::cpu(), kCuda = Device::cuda();

void expect_close(const Figures& actual, const Figures& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * std::abs(expected[i])) << "figure " << i;
}

TranslationSettings averaging() {
  TranslationSettings settings = with_dropout();
  settings.moving_average = 0.9;
  settings.accumulate = 2;
  return settings;
}

// Losses, gradient norms and tokens, with dropout and label smoothing.
TEST_F(TrainingOnCuda, FiftyStepsAreThoseOfTheCpu) {
  const TranslationSplit train = toy_split(40);
  const TranslationSettings settings = with_dropout();
  Figures expected, actual;
  TranslationTraining here(settings, train);
  advance(here, 50, expected);
  TranslationTraining there(settings, train, kCuda);
  EXPECT_EQ(there.device(), kCuda);
  advance(there, 50, actual);
  expect_close(actual, expected, 1e-4);
  const auto loss_of_ten_steps = [&](size_t first) {  // an epoch
    double sum = 0, tokens = 0;
    for (size_t step = first; step < first + 10; ++step) {
      sum += actual[3 * step];
      tokens += actual[3 * step + 2];
    }
    return sum / tokens;
  };
  EXPECT_LT(loss_of_ten_steps(40), 0.9 * loss_of_ten_steps(0));  // it learns
}

// A run that is resumed on the device continues bit for bit, and its memory comes back.
TEST_F(TrainingOnCuda, ResumingChangesNoBit) {
  const TranslationSplit train = toy_split(20);
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("half.h5");
  const int64_t bytes = memory_figures(kCuda).live;
  {
    Figures expected, actual;
    TranslationTraining whole(averaging(), train, kCuda);
    advance(whole, 3, expected);
    save_checkpoint(path, whole.checkpoint({}));
    const RandomState state = default_generator().state();
    advance(whole, 3, expected);
    default_generator().restore(state);
    TranslationTraining resumed(averaging(), train, load_checkpoint(path), path, kCuda);
    advance(resumed, 3, actual);
    EXPECT_EQ(actual, Figures(expected.begin() + 9, expected.end()));
    EXPECT_EQ(bits_of(resumed), bits_of(whole));
  }
  EXPECT_EQ(memory_figures(kCuda).live, bytes);
}

TEST_F(TrainingOnCuda, CheckpointsMoveBetweenDevices) {
  const TranslationSplit train = toy_split(20);
  const test::TemporaryDirectory folder;
  Figures expected;
  TranslationTraining whole(averaging(), train);
  advance(whole, 9, expected);
  for (const auto& [first, second] : {std::pair{kCuda, kCpu}, {kCpu, kCuda}}) {
    SCOPED_TRACE(first.text() + " to " + second.text());
    Figures actual;
    const std::string path = folder.file(first.text() + ".h5");
    TranslationTraining begun(averaging(), train, first);
    advance(begun, 5, actual);
    save_checkpoint(path, begun.checkpoint({}));
    TranslationTraining resumed(averaging(), train, load_checkpoint(path), path, second);
    EXPECT_EQ(resumed.device(), second);
    EXPECT_EQ(bits_of(resumed), bits_of(begun));
    advance(resumed, 4, actual);
    expect_close(actual, expected, 1e-4);
  }
}

TEST_F(TrainingOnCuda, TranslationsAndScoresAreThoseOfTheCpu) {
  const TranslationSplit train = toy_split(30);
  TranslationTraining training(with_dropout(), train);
  Figures figures;
  advance(training, 30, figures);
  Checkpoint checkpoint;
  training.translator().store(checkpoint);
  const auto here = Translator::from_checkpoint(checkpoint, "test"),
             there = Translator::from_checkpoint(checkpoint, "test", kCuda);
  const std::vector<std::string> lines(train.source.begin(), train.source.begin() + 6);
  for (const int64_t beam : {1, 3}) {
    const SearchConfig config{.beam = beam, .nbest = beam};
    const auto expected = here->translate(lines, config), actual = there->translate(lines, config);
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(actual[i].size(), expected[i].size());
      for (size_t n = 0; n < actual[i].size(); ++n) {
        EXPECT_EQ(actual[i][n].text, expected[i][n].text);
        EXPECT_NEAR(actual[i][n].score, expected[i][n].score, 1e-4);
      }
    }
  }
  const auto score = [&](const Translator& translator) {
    Batches batches(translator.source_tokenizer().encode_lines(train.source),
                    translator.target_tokenizer().encode_lines(train.target),
                    {.maximum_tokens = 100, .shuffle = false});
    return score_predictions(translator.transformer(), batches);
  };
  EXPECT_NEAR(score(*there).loss, score(*here).loss, 1e-5);
  EXPECT_EQ(score(*there).accuracy, score(*here).accuracy);
  const auto expected = here->attention(lines[0], train.target[0]).weights,
             actual = there->attention(lines[0], train.target[0]).weights;
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t t = 0; t < actual.size(); ++t)
    test::expect_near(Tensor::of<double>({static_cast<int64_t>(actual[t].size())}, actual[t]),
                      expected[t], 1e-5);
}

// Each form of the model: positions, norms, ties and widths of its own.
TEST_F(TrainingOnCuda, EveryFormOfTheModelComputesThere) {
  const Sequences source = test::sequences({{5, 6, 7, 2}, {2}, {8, 4, 2}}),
                  target = test::sequences({{1, 3, 4}, {1}, {1, 9, 10, 5}});
  for (const bool other : {false, true}) {
    TransformerConfig config = test::small_config();
    config.pre_norm = !other;
    config.learned_positions = other;
    config.tie_output = other;
    config.output_bias = !other;
    if (other) config.activation = nn::Activation::kGelu;
    const auto model = test::small_transformer(3, config);
    const NoGrad no_grad;
    const std::vector<double> expected = (*model)(source, target).values<double>();
    model->to(kCuda);
    EXPECT_EQ(model->device(), kCuda);
    test::expect_near((*model)(source, target), expected, 1e-5);
    model->to(kFloat64);
    EXPECT_EQ((*model)(source, target).device(), kCuda);
    test::expect_near((*model)(source, target), expected, 1e-5);
    model->to(kCpu);
    model->to(kFloat32);
    EXPECT_EQ((*model)(source, target).values<double>(), expected);
  }
}

// A gradient that is not finite is found and named on the device, too.
TEST_F(TrainingOnCuda, BlamesWhatIsNotFinite) {
  TranslationTraining training(with_dropout(), toy_split(10), kCuda);
  nn::Parameter& weight = *training.translator().transformer().parameters()[3].parameter;
  const int64_t size = weight->elements();
  std::vector<float> values(static_cast<size_t>(size), 1);
  values.back() = NAN;
  {
    const NoGrad no_grad;
    weight->assign(Tensor::of<float>(weight->shape(), values).to(kCuda));
  }
  const std::string message = test::error_of([&] { training.step(); });
  EXPECT_NE(message.find("the gradient norm is nan at step 1: anomaly: parameter "),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace gs
