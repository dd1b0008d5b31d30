// Trainings whose host runs ahead of the device.
#include <gtest/gtest.h>

#include <cmath>

#include "models/translation_training.h"
#include "tests/models/small_trainings.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::bits_of;
using test::Figures;

void append(Figures& figures, const std::vector<TranslationTraining::StepResult>& results) {
  for (const TranslationTraining::StepResult& result : results) {
    figures.insert(figures.end(),
                   {result.loss, result.gradient_norm, static_cast<double>(result.tokens)});
  }
}

TranslationSettings averaging() {
  TranslationSettings settings = test::with_dropout();
  settings.moving_average = 0.9;
  return settings;
}

// All results come, in order, and are those of steps that are waited for.
TEST(TrainingAhead, GivesTheResultsOfItsSteps) {
  test::for_each_device([](Device device) {
    constexpr int64_t kSteps = 13;
    const TranslationSplit train = test::toy_split(20);
    Figures expected, actual;
    TranslationTraining waiting(averaging(), train, device);
    test::advance(waiting, kSteps, expected);
    const auto expected_bits = bits_of(waiting);
    TranslationTraining ahead(averaging(), train, device);
    for (int64_t i = 0; i < kSteps; ++i) append(actual, ahead.advance());
    EXPECT_EQ(ahead.steps(), kSteps);
    append(actual, ahead.settle());
    EXPECT_EQ(actual, expected);
    EXPECT_EQ(bits_of(ahead), expected_bits);
    EXPECT_TRUE(ahead.settle().empty());
  });
}

void set_first_parameter(TranslationTraining& training, const Tensor& values) {
  Tensor parameter = training.translator().transformer().parameters().front().parameter->tensor();
  parameter.assign(values);
}

// The error is that of the step that met it, whenever it comes, and nothing has moved since.
TEST(TrainingAhead, AnErrorLeavesAllAsBeforeItsStep) {
  test::for_each_device([](Device device) {
    const TranslationSplit train = test::toy_split(20);
    TranslationTraining training(averaging(), train, device);
    Figures figures;
    test::advance(training, 4, figures);
    const Tensor& parameter =
        training.translator().transformer().parameters().front().parameter->tensor();
    const Tensor whole = Tensor(parameter.value().clone());
    const auto before = bits_of(training);
    const Tensor broken =
        Tensor(Array::full(whole.shape(), std::nan(""), whole.dtype(), whole.device()));
    set_first_parameter(training, broken);
    const std::string error = test::error_of([&] {
      for (int i = 0; i < 5; ++i) training.advance();
      training.settle();
    });
    EXPECT_EQ(error.find("training: the gradient norm is nan at step 5: anomaly: parameter "), 0u)
        << error;
    set_first_parameter(training, whole);
    EXPECT_EQ(bits_of(training), before);
    EXPECT_EQ(training.steps(), 4);
    // It goes on as if nothing had been.
    Figures expected, actual;
    test::advance(training, 3, actual);
    TranslationTraining other(averaging(), train, device);
    test::advance(other, 7, expected);
    EXPECT_EQ(actual, Figures(expected.begin() + 12, expected.end()));
  });
}

}  // namespace
}  // namespace gs
