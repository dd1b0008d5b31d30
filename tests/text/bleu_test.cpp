#include "framework/text/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;
constexpr BleuSmoothing kNone = BleuSmoothing::kNone, kExponential = BleuSmoothing::kExponential;

// mjpost/sacrebleu#114: a short hypothesis, all parts of the score.
TEST(Bleu, ScoresAShortHypothesis) {
  const BleuScore score =
      corpus_bleu(Lines{"The dog bit the man ."}, Lines{"The dog had bit the man ."});
  EXPECT_EQ(score.counts.matches, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_EQ(score.counts.totals, (std::array<int64_t, 4>{6, 5, 4, 3}));
  EXPECT_NEAR(score.brevity_penalty, 0.8464817, 5e-8);
  EXPECT_NEAR(score.score, 51.1507812, 5e-8);
}

// mjpost/sacrebleu#141, #198; nltk/nltk#1383: no 4-gram, no word at all.
TEST(Bleu, ShortAndEmptyHypothesesScoreZero) {
  EXPECT_EQ(corpus_bleu(Lines{"a b"}, Lines{"a b"}).score, 0);
  EXPECT_EQ(corpus_bleu(Lines{"a b"}, Lines{"a b"}, kExponential).score, 0);
  EXPECT_NEAR(corpus_bleu(Lines{"a b"}, Lines{"a b"}, kNone, 2).score, 100, 1e-12);
  for (const BleuSmoothing smoothing : {kNone, kExponential}) {
    EXPECT_EQ(corpus_bleu(Lines{""}, Lines{"a b c d"}, smoothing).score,
              0);  // browsermt/students#10
    EXPECT_EQ(corpus_bleu(Lines{""}, Lines{""}, smoothing).score, 0);
    EXPECT_EQ(corpus_bleu(Lines{}, Lines{}, smoothing).score, 0);
  }
  EXPECT_EQ(corpus_bleu(Lines{"a b c d"}, Lines{""}).score, 0);
}

// mjpost/sacrebleu#198: a missing hypothesis still counts by its reference's length.
TEST(Bleu, EmptyHypothesisInACorpusIsPenalised) {
  const BleuScore score = corpus_bleu(Lines{"a b c d e", ""}, Lines{"a b c d e", "f g h"});
  EXPECT_NEAR(score.score, 54.8811636, 5e-8);
  EXPECT_NEAR(score.brevity_penalty, std::exp(-0.6), 1e-15);
  EXPECT_EQ(score.text(),
            "BLEU 54.88 (100.0/100.0/100.0/100.0; brevity 0.549, 5 words to 8) "
            "nrefs:1|case:mixed|eff:no|tok:none|smooth:none");
}

// mjpost/sacrebleu#141: no overlap; smoothing alone makes a score.
TEST(Bleu, NoOverlap) {
  const Lines hypothesis{"this is a cat"}, reference{"okay thanks"};
  EXPECT_EQ(corpus_bleu(hypothesis, reference).score, 0);
  const BleuScore smoothed = corpus_bleu(hypothesis, reference, kExponential);
  EXPECT_NEAR(smoothed.score, 7.9867888, 5e-8);
  EXPECT_EQ(smoothed.precisions, (std::array<double, 4>{12.5, 100.0 / 12, 6.25, 6.25}));
  EXPECT_THAT(smoothed.signature(), HasSubstr("smooth:exp"));
}

// Papineni et al. 2002, section 2.1: clipped counts.
TEST(Bleu, ClipsRepeatedWords) {
  const BleuScore score =
      corpus_bleu(Lines{"the the the the the the the"}, Lines{"the cat is on the mat"}, kNone, 1);
  EXPECT_EQ(score.counts.matches[0], 2);
  EXPECT_EQ(score.counts.totals[0], 7);
  EXPECT_EQ(score.brevity_penalty, 1);
  EXPECT_NEAR(score.score, 28.5714, 5e-5);
}

// odashi/mteval#3: exactly zero, not a small number.
TEST(Bleu, NoMatchOfTheHighestOrderIsZero) {
  EXPECT_EQ(corpus_bleu(Lines{"This is a ."}, Lines{"This is a test ."}).score, 0);
}

TEST(Bleu, CountsAddUp) {
  const BleuCounts a = count_bleu("a b c d", "a b c d e"), b = count_bleu("x y", "y x");
  BleuCounts sum = a;
  sum += b;
  EXPECT_EQ(sum.matches, (std::array<int64_t, 4>{6, 3, 2, 1}));
  EXPECT_EQ(sum.totals, (std::array<int64_t, 4>{6, 4, 2, 1}));
  EXPECT_EQ(sum.hypothesis_length, 6);
  EXPECT_EQ(sum.reference_length, 7);
  EXPECT_EQ(corpus_bleu(Lines{"a b c d", "x y"}, Lines{"a b c d e", "y x"}).counts, sum);
}

TEST(Bleu, SpacesOnlySeparate) {
  EXPECT_EQ(count_bleu(" a  b\tc\xC2\xA0"
                       "d ",
                       "a b c d"),
            count_bleu("a b c d", "a b c d"));
}

TEST(Bleu, RefusesDifferingCountsAndOrders) {
  EXPECT_THAT(test::error_of([] { corpus_bleu(Lines{"a"}, Lines{}); }),
              HasSubstr("counts differ, got 1 hypotheses and 0 references"));
  EXPECT_THAT(test::error_of([] { bleu({}, kNone, 5); }), HasSubstr("order must be 1 to 4, got 5"));
  EXPECT_THAT(test::error_of([] { bleu({}, kNone, 0); }), HasSubstr("got 0"));
}

}  // namespace
}  // namespace gs
