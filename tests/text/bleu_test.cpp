#include "framework/text/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;

// Words as they stand, orders without a match give 0.
const BleuConfig kPlain{.tokenizer = BleuTokenizer::kNone, .smoothing = BleuSmoothing::kNone};
const BleuConfig kExponential{.tokenizer = BleuTokenizer::kNone};

BleuConfig up_to(int order) {
  BleuConfig config = kPlain;
  config.order = order;
  return config;
}

BleuCounts count(std::string_view hypothesis, std::string_view reference) {
  return count_bleu(hypothesis, std::vector<std::string_view>{reference}, kPlain);
}

// mjpost/sacrebleu#114: a short hypothesis, all parts of the score.
TEST(Bleu, ScoresAShortHypothesis) {
  const BleuScore score =
      corpus_bleu(Lines{"The dog bit the man ."}, {Lines{"The dog had bit the man ."}}, kPlain);
  EXPECT_EQ(score.counts.matches, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_EQ(score.counts.totals, (std::array<int64_t, 4>{6, 5, 4, 3}));
  EXPECT_NEAR(score.brevity_penalty, 0.8464817, 5e-8);
  EXPECT_NEAR(score.score, 51.1507812, 5e-8);
}

// mjpost/sacrebleu#141, #198; nltk/nltk#1383: no 4-gram, no word at all.
TEST(Bleu, ShortAndEmptyHypothesesScoreZero) {
  EXPECT_EQ(corpus_bleu(Lines{"a b"}, {Lines{"a b"}}, kPlain).score, 0);
  EXPECT_EQ(corpus_bleu(Lines{"a b"}, {Lines{"a b"}}, kExponential).score, 0);
  EXPECT_NEAR(corpus_bleu(Lines{"a b"}, {Lines{"a b"}}, up_to(2)).score, 100, 1e-12);
  for (const BleuConfig& config : {kPlain, kExponential}) {
    const References reference{{"a b c d"}};
    EXPECT_EQ(corpus_bleu(Lines{""}, reference, config).score, 0);  // browsermt/students#10
    EXPECT_EQ(corpus_bleu(Lines{""}, {Lines{""}}, config).score, 0);
    EXPECT_EQ(corpus_bleu(Lines{}, {Lines{}}, config).score, 0);
  }
  EXPECT_EQ(corpus_bleu(Lines{"a b c d"}, {Lines{""}}, kPlain).score, 0);
}

// mjpost/sacrebleu#198: a missing hypothesis still counts by its reference's length.
TEST(Bleu, EmptyHypothesisInACorpusIsPenalised) {
  const BleuScore score =
      corpus_bleu(Lines{"a b c d e", ""}, {Lines{"a b c d e", "f g h"}}, kPlain);
  EXPECT_NEAR(score.score, 54.8811636, 5e-8);
  EXPECT_NEAR(score.brevity_penalty, std::exp(-0.6), 1e-15);
  EXPECT_EQ(score.details(),
            "100.0/100.0/100.0/100.0 (BP = 0.549 ratio = 0.625 hyp_len = 5 ref_len = 8)");
  EXPECT_EQ(score.multi_bleu_text(),
            "BLEU = 54.88, 100.0/100.0/100.0/100.0 (BP=0.549, ratio=0.625, hyp_len=5, ref_len=8)");
}

// mjpost/sacrebleu#141: smoothing alone made a score of 7.99; from version 2 on it does not.
TEST(Bleu, NoOverlapScoresZeroWhateverTheSmoothing) {
  const Lines hypothesis{"this is a cat"};
  for (const BleuSmoothing smoothing : {BleuSmoothing::kNone, BleuSmoothing::kExponential,
                                        BleuSmoothing::kFloor, BleuSmoothing::kAddK}) {
    BleuConfig config = kPlain;
    config.smoothing = smoothing;
    const BleuScore score = corpus_bleu(hypothesis, {Lines{"okay thanks"}}, config);
    EXPECT_EQ(score.score, 0);
    EXPECT_EQ(score.precisions, (std::array<double, 4>{}));
  }
  // One word that matches brings the smoothing back: 1/2, 1/4 and 1/8 of a match.
  const BleuScore one = corpus_bleu(Lines{"this is a cat"}, {Lines{"no cat"}}, kExponential);
  EXPECT_EQ(one.precisions, (std::array<double, 4>{25, 50.0 / 3, 12.5, 12.5}));
}

// Papineni et al. 2002, section 2.1: clipped counts.
TEST(Bleu, ClipsRepeatedWords) {
  const BleuScore score =
      corpus_bleu(Lines{"the the the the the the the"}, {Lines{"the cat is on the mat"}}, up_to(1));
  EXPECT_EQ(score.counts.matches[0], 2);
  EXPECT_EQ(score.counts.totals[0], 7);
  EXPECT_EQ(score.brevity_penalty, 1);
  EXPECT_NEAR(score.score, 28.5714, 5e-5);
}

// odashi/mteval#3: exactly zero, not a small number.
TEST(Bleu, NoMatchOfTheHighestOrderIsZero) {
  EXPECT_EQ(corpus_bleu(Lines{"This is a ."}, {Lines{"This is a test ."}}, kPlain).score, 0);
}

TEST(Bleu, CountsAddUp) {
  const BleuCounts a = count("a b c d", "a b c d e"), b = count("x y", "y x");
  BleuCounts sum = a;
  sum += b;
  EXPECT_EQ(sum.matches, (std::array<int64_t, 4>{6, 3, 2, 1}));
  EXPECT_EQ(sum.totals, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_EQ(sum.hypothesis_length, 6);
  EXPECT_EQ(sum.reference_length, 7);
  EXPECT_EQ(corpus_bleu(Lines{"a b c d", "x y"}, {Lines{"a b c d e", "y x"}}, kPlain).counts, sum);
}

TEST(Bleu, SpacesOnlySeparate) {
  EXPECT_EQ(count(" a  b\tc\xC2\xA0"
                  "d ",
                  "a b c d"),
            count("a b c d", "a b c d"));
}

// Papineni et al. 2002, section 2.2.2: the nearest length, of two as near the shorter; n-grams of
// different references do not add up.
TEST(Bleu, TakesTheNearestOfSeveralReferences) {
  const std::vector<std::string_view> references{"a a b c d", "a b c", "a x y z a a q"};
  const BleuCounts counts = count_bleu("a a a a", references, kPlain);
  EXPECT_EQ(counts.reference_length, 3);
  EXPECT_EQ(counts.matches, (std::array<int64_t, 4>{3, 1, 0, 0}));
  EXPECT_NEAR(corpus_bleu(Lines{"b c d e"}, {Lines{"a"}, Lines{"b c d e"}}, kPlain).score, 100,
              1e-12);
}

TEST(Bleu, EffectiveOrderLeavesOutWhatASentenceCannotHave) {
  BleuConfig config = kExponential;
  config.effective_order = true;
  EXPECT_NEAR(corpus_bleu(Lines{"a b"}, {Lines{"a b"}}, config).score, 100, 1e-12);
  EXPECT_EQ(corpus_bleu(Lines{""}, {Lines{"a b"}}, config).score, 0);
}

TEST(Bleu, SignatureTellsAllThatMatters) {
  EXPECT_EQ(BleuConfig().signature(),
            "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:gradstone-0.1.0");
  BleuConfig config{.tokenizer = BleuTokenizer::kInternational,
                    .lowercase = true,
                    .smoothing = BleuSmoothing::kFloor,
                    .effective_order = true};
  EXPECT_EQ(config.signature(3, "bs:1000|seed:7"),
            "nrefs:3|bs:1000|seed:7|case:lc|eff:yes|tok:intl|smooth:floor[0.10]|"
            "version:gradstone-0.1.0");
  config.smoothing = BleuSmoothing::kAddK;
  EXPECT_THAT(config.signature(), HasSubstr("smooth:add-k[1.00]"));
  config.smoothing_value = 0.5;
  EXPECT_THAT(config.signature(), HasSubstr("smooth:add-k[0.50]"));
}

// A million replacements in one line take no longer than reading it.
TEST(Bleu, TokenizesLongLinesInLinearTime) {
  std::string line;
  for (int i = 0; i < 1000000; ++i) line += "&amp;";
  const std::string words = tokenize_for_bleu(line, BleuTokenizer::k13a);
  ASSERT_EQ(words.size(), 1999999u);
  EXPECT_EQ(words.substr(0, 5), "& & &");
}

TEST(Bleu, RefusesDifferingCountsAndBadConfigurations) {
  EXPECT_THAT(test::error_of([] { corpus_bleu(Lines{"a"}, {Lines{}}); }),
              HasSubstr("counts differ, got 1 hypotheses and 0 references"));
  EXPECT_THAT(test::error_of([] {
                corpus_bleu(Lines{"a"}, {Lines{"a"}, Lines{"a", "b"}});
              }),
              HasSubstr("counts differ, got 1 hypotheses and 2 references"));
  EXPECT_EQ(test::error_of([] { corpus_bleu(Lines{}, References()); }),
            "bleu: there is no reference; give at least one");
  EXPECT_EQ(test::error_of([] { count_bleu("a", std::vector<std::string_view>()); }),
            "count_bleu: there is no reference; give at least one");
  EXPECT_THAT(test::error_of([] { bleu({}, up_to(5)); }), HasSubstr("order must be 1 to 4, got 5"));
  EXPECT_THAT(test::error_of([] { bleu({}, up_to(0)); }), HasSubstr("got 0"));
  EXPECT_THAT(test::error_of([] { bleu({}, {.smoothing_value = -1}); }),
              HasSubstr("must be 0 or more, got -1"));
  EXPECT_THAT(test::error_of([] { bleu({}, {.smoothing_value = NAN}); }), HasSubstr("got nan"));
  EXPECT_EQ(test::error_of([] { parse_bleu_smoothing("add_k"); }),
            "bleu: there is no such smoothing, got add_k; use none, exp, floor or add-k");
  EXPECT_EQ(test::error_of([] { parse_bleu_tokenizer("zh"); }),
            "bleu: there is no such tokenizer, got zh; use none, 13a, intl or char");
}

}  // namespace
}  // namespace gs
