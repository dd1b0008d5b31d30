#include "models/translation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/translation_training.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::HasSubstr;

Validation example_validation() {
  Validation validation;
  validation.prediction = {.loss = 0.5, .perplexity = 1.75, .accuracy = 0.25, .tokens = 8};
  validation.translation.exact_match = 0.125;
  validation.translation.bleu.score = 31.5;
  validation.translation.chrf = 55.25;
  return validation;
}

TranslationSettings small_settings() {
  TranslationSettings settings;
  settings.model.width = 8;
  settings.model.heads = 2;
  settings.model.feed_forward_width = 8;
  settings.model.encoder_layers = settings.model.decoder_layers = 1;
  settings.model.dropout = 0.5;
  settings.toy = {.seed = 5, .level = 1, .train_pairs = 20, .valid_pairs = 6, .test_pairs = 3};
  return settings;
}

TEST(TranslationReport, NamesTheMetrics) {
  const Validation validation = example_validation();
  EXPECT_EQ(validation.metric("loss"), 0.5);
  EXPECT_EQ(validation.metric("perplexity"), 1.75);
  EXPECT_EQ(validation.metric("accuracy"), 0.25);
  EXPECT_EQ(validation.metric("bleu"), 31.5);
  EXPECT_EQ(validation.metric("chrf"), 55.25);
  EXPECT_EQ(error_of([&] { (void)validation.metric("luck"); }),
            "validation: no metric is called luck; use loss, perplexity, accuracy, bleu, chrf");
  EXPECT_EQ(validation.text(),
            "validation loss 0.5000, perplexity 1.750, token accuracy 25.00 %, exact match 12.50 "
            "%, BLEU 31.50, chrF 55.25");
  const MetricsLog::Fields fields = validation.fields("average", 7);
  const MetricsLog::Fields expected{{"event", std::string("average")},
                                    {"step", int64_t{7}},
                                    {"loss", 0.5},
                                    {"perplexity", 1.75},
                                    {"token_accuracy", 0.25},
                                    {"exact_match", 0.125},
                                    {"bleu", 31.5},
                                    {"chrf", 55.25}};
  EXPECT_EQ(fields, expected);
}

// In evaluation, whatever the model was in, and the same again.
TEST(TranslationReport, ValidatesAsOftenAsWanted) {
  const TranslationSettings settings = small_settings();
  const TranslationData data = settings.data();
  TranslationTraining training(settings, data.train);
  Validator validate(training.translator(), data.valid, settings.search_config(),
                     settings.scoring());
  const Validation first = validate(training.translator());
  EXPECT_TRUE(training.translator().transformer().training());
  EXPECT_EQ(validate(training.translator()).text(), first.text());
  int64_t tokens = 0;
  for (const std::string& line : data.valid.target)
    tokens += std::count(line.begin(), line.end(), ' ') + 2;  // words and the end mark
  EXPECT_EQ(first.prediction.tokens, tokens);
  EXPECT_EQ(first.translation.sentences, 6);
  for (int i = 0; i < 5; ++i) training.step();
  EXPECT_LT(validate(training.translator()).prediction.loss, first.prediction.loss);
}

TEST(TranslationReport, TestsTheNamedCheckpoint) {
  const test::TemporaryDirectory folder;
  const TranslationSettings settings = small_settings();
  const TranslationData data = settings.data();
  TranslationTraining training(settings, data.train);
  Checkpoint checkpoint = training.checkpoint({});
  checkpoint.training["metric"] = 4.5;
  const std::string path = folder.file("best.h5");
  save_checkpoint(path, checkpoint);
  MetricsLog log = MetricsLog::create(folder.file("metrics.jsonl"));
  const RunSummary summary{.train_seconds = 2.5,
                           .parameters = 99,
                           .steps = 7,
                           .stopped = "enough",
                           .weights = "best",
                           .checkpoint = path};
  report_tests(summary, data.tests, settings.search_config(), settings.scoring(), folder.path(),
               log);
  const auto json = nlohmann::json::parse(test::read_file(folder.file("summary.json")));
  EXPECT_EQ(json["train_seconds"], 2.5);
  EXPECT_EQ(json["parameters"], 99);
  EXPECT_EQ(json["steps"], 7);
  EXPECT_EQ(json["stopped"], "enough");
  EXPECT_EQ(json["weights"], "best");
  EXPECT_EQ(json["checkpoint"], path);
  EXPECT_EQ(json["validation_metric"], 4.5);
  EXPECT_EQ(json["validation_metric_name"], "loss");
  EXPECT_FALSE(json.contains("averaged_files"));
  EXPECT_EQ(json["bleu_signature"],
            "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:gradstone-0.1.0");
  EXPECT_EQ(json["chrf_signature"],
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:gradstone-0.1.0");
  for (const TranslationSplit& test : data.tests) {
    const std::vector<std::string> translations =
        translate_best(*Translator::load(path), test.source, settings.search_config());
    const TranslationScore score = score_translations(translations, test.target);
    EXPECT_EQ(json["exact_match"][test.name], score.exact_match);
    EXPECT_EQ(json["bleu"][test.name], score.bleu.score);
    EXPECT_EQ(json["chrf"][test.name], score.chrf);
    EXPECT_THAT(test::read_file(folder.file("metrics.jsonl")),
                HasSubstr("{\"event\":\"test " + test.name +
                          "\",\"step\":7,\"weights\":\"best\",\"exact_match\":"));
  }
}

}  // namespace
}  // namespace gs
