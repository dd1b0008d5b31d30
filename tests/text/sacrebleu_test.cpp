// Scores against those of sacreBLEU (tools/sacrebleu_fixtures.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/text/bleu.h"
#include "framework/text/chrf.h"
#include "framework/text/unicode.h"
#include "framework/text/utf8.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using Json = nlohmann::json;

const Json& fixture() {
  static const Json json = Json::parse(std::ifstream(test::test_data("sacrebleu/scores.json")));
  return json;
}

// What the bodies below are called with: each corpus, each of its scores of one metric.
template <typename Body>
void for_each_score(const std::string& metric, Body body) {
  int64_t scores = 0;
  for (const auto& [key, value] : fixture().items()) {
    const std::string& name = key;
    const Json& corpus = value;
    if (name.rfind("corpus ", 0) != 0) continue;
    const std::vector<std::string> hypotheses = corpus["hypotheses"];
    const References references = corpus["references"];
    for (const Json& expected : corpus["scores"]) {
      if (expected["metric"] != metric) continue;
      SCOPED_TRACE(name + " " + expected["options"].dump());
      body(hypotheses, references, expected);
      ++scores;
    }
  }
  EXPECT_GE(scores, 200);
}

BleuConfig bleu_config(const Json& options) {
  BleuConfig config;
  config.tokenizer = parse_bleu_tokenizer(options.at("tokenize").get<std::string>());
  config.smoothing = parse_bleu_smoothing(options.value("smooth_method", "exp"));
  if (options.contains("smooth_value")) config.smoothing_value = options["smooth_value"];
  config.lowercase = options.value("lowercase", false);
  config.effective_order = options.value("effective_order", false);
  config.order = options.value("max_ngram_order", 4);
  return config;
}

ChrfConfig chrf_config(const Json& options) {
  return {.character_order = options.value("char_order", 6),
          .word_order = options.value("word_order", 0),
          .beta = options.value("beta", 2),
          .lowercase = options.value("lowercase", false),
          .whitespace = options.value("whitespace", false),
          .epsilon_smoothing = options.value("eps_smoothing", false)};
}

double near(double value) { return 1e-13 * std::max(1.0, value); }

TEST(SacreBleu, TokenizersGiveTheSameWords) {
  ASSERT_GE(fixture()["lines"].size(), 70u);
  for (const Json& expected : fixture()["lines"]) {
    const std::string line = expected["line"];
    SCOPED_TRACE(expected["line"].dump());
    for (const char* name : {"13a", "intl", "char", "none"}) {
      SCOPED_TRACE(name);
      const std::string tokenized = tokenize_for_bleu(line, parse_bleu_tokenizer(name));
      const std::vector<std::string_view> words = split_words(tokenized);
      EXPECT_EQ(std::vector<std::string>(words.begin(), words.end()),
                expected[name].get<std::vector<std::string>>());
    }
    EXPECT_EQ(lower_case(line), expected["lower"].get<std::string>());
  }
}

TEST(SacreBleu, BleuOfCorporaAndSentences) {
  for_each_score("bleu", [](const auto& hypotheses, const auto& references, const Json& expected) {
    BleuConfig config = bleu_config(expected["options"]);
    const BleuScore score = corpus_bleu(hypotheses, references, config);
    EXPECT_NEAR(score.score, expected["score"], near(score.score));
    for (size_t n = 0; n < expected["precisions"].size(); ++n)
      EXPECT_NEAR(score.precisions[n], expected["precisions"][n], 1e-13) << n + 1;
    EXPECT_NEAR(score.brevity_penalty, expected["brevity_penalty"], 1e-15);
    EXPECT_EQ(score.counts.hypothesis_length, expected["hypothesis_length"]);
    EXPECT_EQ(score.counts.reference_length, expected["reference_length"]);
    EXPECT_EQ(score.details(), expected["details"].get<std::string>());
    EXPECT_EQ(config.signature(static_cast<int64_t>(references.size())),
              expected["signature"].get<std::string>() + "|version:gradstone-0.1.0");
    config.effective_order = true;
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      const BleuCounts counts = count_bleu(hypotheses[i], references_of(references, i), config);
      const double sentence = bleu(counts, config).score;
      EXPECT_NEAR(sentence, expected["sentences"][i], near(sentence)) << i;
    }
  });
}

TEST(SacreBleu, ChrfOfCorporaAndSentences) {
  for_each_score("chrf", [](const auto& hypotheses, const auto& references, const Json& expected) {
    const ChrfConfig config = chrf_config(expected["options"]);
    const double score = corpus_chrf(hypotheses, references, config);
    EXPECT_NEAR(score, expected["score"], near(score));
    EXPECT_EQ(config.name(), expected["name"].get<std::string>());
    EXPECT_EQ(config.signature(static_cast<int64_t>(references.size())),
              expected["signature"].get<std::string>() + "|version:gradstone-0.1.0");
    for (size_t i = 0; i < hypotheses.size(); ++i) {
      const double sentence =
          chrf(count_chrf(hypotheses[i], references_of(references, i), config), config);
      EXPECT_NEAR(sentence, expected["sentences"][i], near(sentence)) << i;
    }
  });
}

}  // namespace
}  // namespace gs
