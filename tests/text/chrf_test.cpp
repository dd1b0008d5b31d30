#include "framework/text/chrf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;
using Order = ChrfCounts::Order;

ChrfCounts count(std::string_view hypothesis, std::vector<std::string_view> references,
                 const ChrfConfig& config) {
  return count_chrf(hypothesis, references, config);
}

TEST(Chrf, CountsCharactersAcrossWords) {
  const ChrfConfig config{.character_order = 3};
  // "abca" and "abcb"
  EXPECT_EQ(count("ab ca", {"abc b"}, config).orders,
            (std::vector<Order>{{4, 4, 3}, {3, 3, 2}, {2, 2, 1}}));
  // A reference too short for an order leaves the hypothesis' n-grams out as well.
  EXPECT_EQ(count("abc", {"ab"}, config).orders,
            (std::vector<Order>{{3, 2, 2}, {2, 1, 1}, {0, 0, 0}}));
  EXPECT_EQ(count("ä", {"ä"}, config).orders[0], (Order{1, 1, 1}));
}

TEST(Chrf, WordsGiveUpOnePunctuationMark) {
  const ChrfConfig config{.character_order = 0, .word_order = 1};
  // (hi and ) of "(hi)"; " and x of "\"x"; "…" is not ASCII; (hi and . of "(hi."
  EXPECT_EQ(count("(hi) \"x y…", {"(hi. ) \" x y…"}, config).orders,
            (std::vector<Order>{{5, 6, 5}}));
}

// By hand: "ab" for "abc" has precisions 1, 1 and recalls 2/3, 1/2; the third order has no n-gram
// of the hypothesis.
TEST(Chrf, AveragesTheOrdersThatBothSidesHave) {
  const double recall = (2.0 / 3 + 1.0 / 2) / 2;
  EXPECT_NEAR(corpus_chrf(Lines{"ab"}, {Lines{"abc"}}), 100 * 5 * recall / (4 + recall), 1e-12);
  EXPECT_EQ(corpus_chrf(Lines{"same words."}, {Lines{"same words."}}, {.word_order = 2}), 100);
}

TEST(Chrf, NothingToCompareIsZero) {
  for (const int64_t word_order : {0, 2}) {
    const ChrfConfig config{.word_order = word_order};
    EXPECT_EQ(corpus_chrf(Lines{""}, {Lines{""}}, config), 0);
    EXPECT_EQ(corpus_chrf(Lines{""}, {Lines{"abc"}}, config), 0);
    EXPECT_EQ(corpus_chrf(Lines{"abc"}, {Lines{" "}}, config), 0);
    EXPECT_EQ(corpus_chrf(Lines{}, {Lines{}}, config), 0);
  }
}

TEST(Chrf, CountsAddUp) {
  const ChrfCounts a = count("abc d", {"abd c"}, {}), b = count("x", {"y"}, {});
  ChrfCounts sum;
  sum += a;
  sum += b;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(sum.orders[i].hypothesis, a.orders[i].hypothesis + b.orders[i].hypothesis);
    EXPECT_EQ(sum.orders[i].reference, a.orders[i].reference + b.orders[i].reference);
    EXPECT_EQ(sum.orders[i].matches, a.orders[i].matches + b.orders[i].matches);
  }
}

TEST(Chrf, NamesAndSignatures) {
  EXPECT_EQ(ChrfConfig().name(), "chrF2");
  EXPECT_EQ(ChrfConfig().signature(),
            "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:gradstone-0.1.0");
  const ChrfConfig config{
      .word_order = 2, .beta = 3, .lowercase = true, .whitespace = true, .epsilon_smoothing = true};
  EXPECT_EQ(config.name(), "chrF3++");
  EXPECT_EQ(config.signature(2, "bs:10|seed:1"),
            "nrefs:2|bs:10|seed:1|case:lc|eff:no|nc:6|nw:2|space:yes|version:gradstone-0.1.0");
}

TEST(Chrf, RefusesDifferingCountsAndBadConfigurations) {
  EXPECT_EQ(test::error_of([] {
              corpus_chrf(Lines{"a"}, {Lines{"a", "b"}});
            }),
            "chrf: counts differ, got 1 hypotheses and 2 references; give one reference for each "
            "hypothesis");
  EXPECT_THAT(test::error_of([] { corpus_chrf(Lines{"a"}, References()); }),
              HasSubstr("there is no reference"));
  EXPECT_THAT(test::error_of([] { count("a", {}, {}); }), HasSubstr("there is no reference"));
  EXPECT_THAT(test::error_of([] { chrf({}, {.character_order = 0}); }),
              HasSubstr("one of them above 0, got 0 of characters and 0 of words"));
  EXPECT_THAT(test::error_of([] { chrf({}, {.character_order = -1}); }), HasSubstr("got -1"));
  EXPECT_THAT(test::error_of([] { chrf({}, {.beta = 0}); }), HasSubstr("got 0"));
}

}  // namespace
}  // namespace gs
