// Minimum length and blocked repetitions, over models of the first order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/search.h"
#include "tests/models/top_of.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;

// Tokens 0 and 1 are padding and begin, 2 is the end "E", 3 is "a", 4 is "b", 5 is "c"; row t holds
// what may follow token t. `counts` receives how many followers were asked for at each step.
using Follows = std::vector<std::vector<double>>;

std::vector<std::vector<Hypothesis>> search_all(const Follows& follows,
                                                const std::vector<int64_t>& limits,
                                                const SearchConfig& config,
                                                std::vector<int64_t>* counts = nullptr) {
  SearchModel model;
  model.step = [&](std::span<const int32_t> tokens, int64_t count) {
    if (counts != nullptr) counts->push_back(count);
    std::vector<std::vector<double>> rows;
    for (const int32_t token : tokens) {
      rows.push_back(follows[static_cast<size_t>(token)]);
      for (double& p : rows.back()) p = std::log(p);
    }
    return test::top_of(rows, count);
  };
  model.select = [](const std::vector<int32_t>&, std::vector<int32_t>) {};
  model.never = {0, 1};
  return beam_search(model, limits, config);
}

std::string text_of(const Hypothesis& hypothesis) {
  std::string text;
  for (const int32_t token : hypothesis.tokens) text += static_cast<char>('a' + token - 3);
  return text + (hypothesis.finished ? "E" : "");
}

std::vector<std::string> texts(const Follows& follows, int64_t limit, const SearchConfig& config) {
  std::vector<std::string> result;
  const auto found = search_all(follows, {limit}, config);
  for (const Hypothesis& hypothesis : found[0]) result.push_back(text_of(hypothesis));
  return result;
}

const Follows kAb{{0, 0, 0, 0, 0},
                  {0, 0, .1, .5, .4},
                  {0, 0, 0, 0, 0},
                  {0, 0, .29, .41, .3},
                  {0, 0, .9, .06, .04}};
const Follows kAbc{{0, 0, 0, 0, 0, 0},         {0, 0, .05, .41, .33, .21},
                   {0, 0, 0, 0, 0, 0},         {0, 0, .07, .23, .31, .39},
                   {0, 0, .11, .57, .03, .29}, {0, 0, .17, .13, .51, .19}};

TEST(SearchBlocks, TheEndMayNotComeBeforeTheMinimumLength) {
  const auto shortest = [&](int64_t minimum, int64_t beam) {
    return texts(kAb, 4, {.beam = beam, .alpha = 0, .minimum_length = minimum})[0];
  };
  EXPECT_EQ(shortest(1, 4), "bE");
  EXPECT_EQ(shortest(2, 4), "abE");
  EXPECT_EQ(shortest(3, 4), "aabE");
  EXPECT_EQ(shortest(4, 8), "aaabE");
  // Above the limit it is the limit.
  EXPECT_EQ(shortest(9, 8), "aaabE");
  // The end, though likely, is passed over even where nothing else is followed.
  const Follows ends{{0, 0, 0, 0, 0}, {0, 0, .9, .1, 0}, {0, 0, 0, 0, 0}, {0, 0, .8, .2, 0}, {}};
  const SearchConfig greedy{.alpha = 0, .minimum_length = 2};
  const Hypothesis found = search_all(ends, {5}, greedy)[0][0];
  EXPECT_EQ(text_of(found), "aaE");
  EXPECT_NEAR(found.log_probability, std::log(.1 * .2 * .8), 1e-6);
}

TEST(SearchBlocks, NoTokensComeTwice) {
  const auto greedy = [&](int64_t no_repeat) {
    return texts(kAb, 6, {.alpha = 0, .no_repeat = no_repeat})[0];
  };
  EXPECT_EQ(greedy(0), "aaaaaa");
  EXPECT_EQ(greedy(1), "abE");
  EXPECT_EQ(greedy(2), "aabE");
  EXPECT_EQ(greedy(3), "aaabE");
  EXPECT_EQ(greedy(5), "aaaaabE");
  EXPECT_EQ(greedy(6), "aaaaaa");
  EXPECT_EQ(greedy(INT64_MAX), "aaaaaa");
}

// What is left of the enumerated sequences is what a wide beam finds.
TEST(SearchBlocks, AWideBeamFindsWhatAnExhaustiveSearchFinds) {
  for (const int64_t no_repeat : {1, 2, 3}) {
    for (const int64_t minimum : {0, 2, 3}) {
      for (const double alpha : {0.0, 1.0, 2.0}) {
        const SearchConfig config{.beam = 300,
                                  .nbest = 10,
                                  .alpha = alpha,
                                  .minimum_length = minimum,
                                  .no_repeat = no_repeat};
        std::vector<std::pair<double, std::string>> expected;
        for (int number = 0; number < 5 * 5 * 5 * 5; ++number) {  // digits: 0 is behind the end
          std::string text;
          for (int rest = number; rest > 0; rest /= 4)
            text += static_cast<char>('a' + rest % 4 - 1);
          if (text.size() > 4 || text.find('`') != std::string::npos) continue;
          if (static_cast<int64_t>(text.size()) < minimum) continue;
          std::multiset<std::string> grams;
          for (size_t i = 0; i + static_cast<size_t>(no_repeat) <= text.size(); ++i)
            grams.insert(text.substr(i, static_cast<size_t>(no_repeat)));
          if (grams.size() != std::set<std::string>(grams.begin(), grams.end()).size()) continue;
          size_t last = 1;
          double sum = 0;
          for (const char c : text) {
            sum += std::log(kAbc[last][static_cast<size_t>(c - 'a' + 3)]);
            last = static_cast<size_t>(c - 'a' + 3);
          }
          sum += std::log(kAbc[last][2]);
          const double length = static_cast<double>(text.size() + 1);
          expected.emplace_back(sum / std::pow(length, alpha), text + "E");
        }
        std::sort(expected.rbegin(), expected.rend());
        const auto found = search_all(kAbc, {4}, config)[0];
        ASSERT_EQ(found.size(), std::min<size_t>(10, expected.size()));
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(text_of(found[i]), expected[i].second) << no_repeat << minimum << alpha;
          EXPECT_NEAR(found[i].score, expected[i].first, 1e-5);
        }
      }
    }
  }
}

TEST(SearchBlocks, AHypothesisWithoutAWayToGoOnEnds) {
  for (const int64_t beam : {1, 2, 5}) {
    const SearchConfig config{.beam = beam, .alpha = 0, .minimum_length = 7, .no_repeat = 1};
    EXPECT_THAT(texts(kAb, 9, config), ElementsAre("abE")) << beam;
    // It is cut where the model never ends.
    Follows endless = kAb;
    for (auto& row : endless)
      if (!row.empty()) row[2] = 0;
    EXPECT_THAT(texts(endless, 9, config), ElementsAre("ab")) << beam;
    EXPECT_THAT(texts(endless, 1, config), ElementsAre("a")) << beam;
  }
  const SearchConfig all{.beam = 5, .nbest = 5, .alpha = 0, .minimum_length = 7, .no_repeat = 1};
  EXPECT_THAT(texts(kAb, 9, all), ElementsAre("abE", "baE"));
  // One that can end does so beside one that cannot.
  Follows half = kAb;
  half[4][2] = 0;
  EXPECT_THAT(texts(half, 9, all), ElementsAre("baE", "ab"));
}

// A sentence whose hypotheses are blocked does not change what its mates get.
TEST(SearchBlocks, SentencesDoNotDependOnTheirBatch) {
  const std::vector<int64_t> limits{1, 9, 3, 6};
  const SearchConfig config{.beam = 3, .nbest = 3, .alpha = 1, .minimum_length = 3, .no_repeat = 2};
  const auto together = search_all(kAbc, limits, config);
  for (size_t i = 0; i < limits.size(); ++i) {
    const auto alone = search_all(kAbc, {limits[i]}, config)[0];
    ASSERT_EQ(together[i].size(), alone.size());
    for (size_t h = 0; h < alone.size(); ++h) {
      EXPECT_EQ(text_of(together[i][h]), text_of(alone[h]));
      EXPECT_EQ(together[i][h].score, alone[h].score);
    }
  }
}

// More followers are asked of the model only where some are blocked.
TEST(SearchBlocks, CostNothingWhereNothingIsBlocked) {
  std::vector<int64_t> counts;
  search_all(kAb, {4}, {.beam = 2, .alpha = 1}, &counts);
  EXPECT_THAT(counts, ElementsAre(6, 6, 6, 6));
  counts.clear();
  search_all(kAb, {3}, {.beam = 2, .alpha = 0, .minimum_length = 2, .no_repeat = 1}, &counts);
  EXPECT_THAT(counts, ElementsAre(7, 8, 8));
}

TEST(SearchBlocks, RefusesWhatCannotBe) {
  const auto error = [](const SearchConfig& config) {
    return error_of([&] { check_config(config); });
  };
  EXPECT_EQ(error({.maximum_length = 3, .minimum_length = 4}),
            "search: the minimum length must be at most the maximum, got 4 and 3");
  EXPECT_NO_THROW(check_config({.maximum_length = 3, .minimum_length = 3}));
  EXPECT_EQ(error({.maximum_length = -1, .minimum_length = -2, .no_repeat = -3}),
            "search: the minimum and maximum length and the tokens that may not repeat must not be "
            "negative, got -2, -1 and -3");
}

}  // namespace
}  // namespace gs
