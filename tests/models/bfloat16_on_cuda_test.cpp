// Models that compute in bfloat16 on a CUDA device against the same in float32.
#include <gtest/gtest.h>

#include <cmath>

#include "models/precision.h"
#include "models/translation_training.h"
#include "tests/models/small_models.h"
#include "tests/models/small_trainings.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::advance;
using test::bits_of;
using test::Figures;
using test::toy_split;

using ModelsInBfloat16 = test::CudaTest;

const Device kCuda = Device::cuda();

struct LossAndGradients {
  double loss = 0;
  std::vector<std::vector<double>> gradients;  // of each parameter
};

LossAndGradients figures_of(Transformer& model) {
  const Sequences source = test::sequences({{5, 6, 7, 2}, {2}, {8, 4, 2}}),
                  target = test::sequences({{1, 3, 4}, {1}, {1, 9, 10, 5}});
  const Tensor labels = Tensor::of<int32_t>({8}, {3, 4, 2, 2, 9, 10, 5, 2}).to(kCuda);
  model.clear_gradients();
  const Loss loss = model.loss(target, model.encode(source), labels, {.label_smoothing = 0.1});
  EXPECT_EQ(loss.sum.dtype(), kFloat32);
  loss.mean().backward();
  LossAndGradients figures{loss.mean().item(), {}};
  for (const auto& named : model.parameters()) {
    EXPECT_EQ(named.parameter->tensor().dtype(), kFloat32);
    EXPECT_EQ(named.parameter->tensor().gradient().dtype(), kFloat32);
    figures.gradients.push_back(named.parameter->tensor().gradient().values<double>());
  }
  return figures;
}

double norm_of(const std::vector<std::vector<double>>& all) {
  double squares = 0;
  for (const auto& one : all)
    for (const double value : one) squares += value * value;
  return std::sqrt(squares);
}

TEST_F(ModelsInBfloat16, LossAndGradientsAreThoseOfFloat32) {
  for (const bool other : {false, true}) {
    TransformerConfig config = test::small_config();
    config.width = 32;
    config.heads = 4;
    config.pre_norm = !other;
    config.learned_positions = other;
    config.tie_output = other;
    config.output_bias = !other;
    if (other) config.activation = nn::Activation::kGelu;
    const auto model = test::small_transformer(3, config);
    model->to(kCuda);
    const LossAndGradients expected = figures_of(*model);
    model->use_bfloat16(true);
    EXPECT_TRUE(model->uses_bfloat16());
    const LossAndGradients actual = figures_of(*model);
    EXPECT_NE(actual.loss, expected.loss);
    EXPECT_NEAR(actual.loss, expected.loss, 0.01 * expected.loss);
    std::vector<std::vector<double>> differences = actual.gradients;
    for (size_t i = 0; i < differences.size(); ++i)
      for (size_t j = 0; j < differences[i].size(); ++j)
        differences[i][j] -= expected.gradients[i][j];
    EXPECT_LT(norm_of(differences), 0.03 * norm_of(expected.gradients));
    model->use_bfloat16(false);
    EXPECT_EQ(figures_of(*model).loss, expected.loss);
  }
}

TranslationSettings settings_in(const std::string& precision) {
  TranslationSettings settings = test::with_dropout();
  settings.precision = precision;
  return settings;
}

// Of the loss a token.
double mean_loss(const Figures& figures, size_t first, size_t count) {
  double sum = 0, tokens = 0;
  for (size_t step = first; step < first + count; ++step) {
    sum += figures[3 * step];
    tokens += figures[3 * step + 2];
  }
  return sum / tokens;
}

TEST_F(ModelsInBfloat16, TrainingFollowsFloat32) {
  constexpr size_t kSteps = 60, kTen = 10;
  const TranslationSplit train = toy_split(40);
  Figures expected, actual;
  TranslationTraining wide(settings_in("float32"), train);
  advance(wide, kSteps, expected);
  TranslationTraining narrow(settings_in("bfloat16"), train, kCuda);
  advance(narrow, kSteps, actual);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t step = 0; step < kSteps; ++step)
    EXPECT_NEAR(actual[3 * step], expected[3 * step], 0.01 * expected[3 * step]) << "step " << step;
  EXPECT_NEAR(mean_loss(actual, kSteps - kTen, kTen), mean_loss(expected, kSteps - kTen, kTen),
              0.002 * mean_loss(expected, kSteps - kTen, kTen));
  EXPECT_LT(mean_loss(actual, kSteps - kTen, kTen), 0.9 * mean_loss(actual, 0, kTen));
  for (const auto& [name, array] : narrow.checkpoint({}).optimizer)
    EXPECT_NE(array.dtype(), kBFloat16) << name;
}

// Steps that are recorded and replayed compute the same.
TEST_F(ModelsInBfloat16, StepsRunAhead) {
  const TranslationSplit train = toy_split(20);
  Figures expected, actual;
  TranslationTraining waiting(settings_in("bfloat16"), train, kCuda);
  advance(waiting, 12, expected);
  TranslationTraining ahead(settings_in("bfloat16"), train, kCuda);
  const auto append = [&](const std::vector<TranslationTraining::StepResult>& results) {
    for (const TranslationTraining::StepResult& result : results) {
      actual.insert(actual.end(),
                    {result.loss, result.gradient_norm, static_cast<double>(result.tokens)});
    }
  };
  for (int step = 0; step < 12; ++step) append(ahead.advance());
  append(ahead.settle());
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(bits_of(ahead), bits_of(waiting));
}

TEST_F(ModelsInBfloat16, CheckpointsGoOnInAnyPrecision) {
  const TranslationSplit train = toy_split(20);
  const test::TemporaryDirectory folder;
  Figures expected;
  TranslationTraining whole(settings_in("float32"), train);
  advance(whole, 8, expected);
  const std::vector<std::string> precisions{"float32", "tf32", "bfloat16"};
  for (size_t first = 0; first < precisions.size(); ++first) {
    const std::string &begins = precisions[first], &goes_on = precisions[(first + 1) % 3];
    SCOPED_TRACE(begins + " to " + goes_on);
    const std::string path = folder.file(begins + ".h5");
    Figures actual;
    TranslationTraining begun(settings_in(begins), train, kCuda);
    advance(begun, 4, actual);
    save_checkpoint(path, begun.checkpoint({}));
    TranslationTraining resumed(settings_in(goes_on), train, load_checkpoint(path), path, kCuda);
    EXPECT_EQ(bits_of(resumed), bits_of(begun));
    EXPECT_EQ(resumed.translator().transformer().uses_bfloat16(), goes_on == "bfloat16");
    advance(resumed, 4, actual);
    for (size_t step = 0; step < 8; ++step)
      EXPECT_NEAR(actual[3 * step], expected[3 * step], 0.03 * expected[3 * step]);
  }
  set_precision(whole.translator().transformer(), "float32");
}

TEST_F(ModelsInBfloat16, Translates) {
  const TranslationSplit train = toy_split(20);
  TranslationTraining training(settings_in("float32"), train);
  Figures figures;
  advance(training, 40, figures);
  Checkpoint checkpoint;
  training.translator().store(checkpoint);
  const auto translator = Translator::from_checkpoint(checkpoint, "test", kCuda);
  const std::vector<std::string> lines(train.source.begin(), train.source.begin() + 4);
  const SearchConfig config{.beam = 2};
  const auto expected = translator->translate(lines, config);
  translator->transformer().use_bfloat16(true);
  const auto actual = translator->translate(lines, config);
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_NEAR(actual[i][0].score, expected[i][0].score, 0.03 * std::abs(expected[i][0].score));
}

}  // namespace
}  // namespace gs
