#include "models/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/models/top_of.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A model of the first order: what follows depends on the last token alone. Tokens 0 and 1 are
// padding and begin, 2 is the end, 3 is "a", 4 is "b"; row t holds what may follow token t.
using Follows = std::vector<std::vector<double>>;

SearchModel first_order(Follows follows) {
  SearchModel model;
  model.step = [follows](std::span<const int32_t> tokens, int64_t count) {
    std::vector<std::vector<double>> rows;
    for (const int32_t token : tokens) {
      rows.push_back(follows[static_cast<size_t>(token)]);
      for (double& p : rows.back()) p = std::log(p);
    }
    return test::top_of(rows, count);
  };
  model.select = [](const std::vector<int32_t>&, std::vector<int32_t>) {};
  model.never = {0, 1};
  return model;
}

const Follows kPublished{
    {0, 0, 0, 0, 0}, {0, 0, .1, .5, .4}, {0, 0, 0, 0, 0}, {0, 0, .3, .4, .3}, {0, 0, .9, .05, .05}};

std::string text_of(const Hypothesis& hypothesis) {
  std::string text;
  for (const int32_t token : hypothesis.tokens) text += token == 3 ? "a" : "b";
  return text + (hypothesis.finished ? "E" : "");
}

std::vector<std::string> texts_of(const std::vector<Hypothesis>& hypotheses) {
  std::vector<std::string> texts;
  for (const Hypothesis& hypothesis : hypotheses) texts.push_back(text_of(hypothesis));
  return texts;
}

std::vector<Hypothesis> search(const Follows& follows, int64_t limit, const SearchConfig& config) {
  const std::vector<int64_t> limits{limit};
  return beam_search(first_order(follows), limits, config)[0];
}

// Greedy search would go on for ever; a wider one finds the better end.
// jarobyte91/pytorch_beam_search#5, OpenNMT/OpenNMT-py#1320
TEST(Search, FindsTheBestOfAModelWhereGreedyNeverEnds) {
  const auto greedy = search(kPublished, 4, {.beam = 1, .alpha = 0});
  ASSERT_EQ(texts_of(greedy), std::vector<std::string>{"aaaa"});
  EXPECT_FALSE(greedy[0].finished);
  EXPECT_NEAR(greedy[0].log_probability, -3.4420194, 1e-6);

  for (int64_t beam = 2; beam <= 8; ++beam) {
    const auto best = search(kPublished, 4, {.beam = beam, .alpha = 0});
    ASSERT_EQ(texts_of(best), std::vector<std::string>{"bE"}) << beam;
    EXPECT_NEAR(best[0].log_probability, -1.0216512, 1e-6);
  }

  const auto ranked = search(kPublished, 4, {.beam = 4, .nbest = 4, .alpha = 0});
  ASSERT_THAT(texts_of(ranked), ElementsAre("bE", "aE", "abE", "E"));
  const std::vector<double> expected{-1.021651, -1.897120, -2.002481, -2.302585};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(ranked[i].log_probability, expected[i], 1e-6);
    EXPECT_EQ(ranked[i].score, ranked[i].log_probability);
  }

  const auto by_length = search(kPublished, 4, {.beam = 4, .nbest = 3, .alpha = 1});
  ASSERT_THAT(texts_of(by_length), ElementsAre("bE", "abE", "aabE"));
  const std::vector<double> scores{-0.510826, -0.667494, -0.729693};
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(by_length[i].score, scores[i], 1e-6);
}

// joeynmt/joeynmt#149, huggingface/transformers#20901
TEST(Search, LengthPenaltiesHaveTheirPublishedValues) {
  const auto power = [](double log_probability, int64_t length, double alpha) {
    return length_score(log_probability, length, LengthPenalty::kPower, alpha);
  };
  const auto gnmt = [](double log_probability, int64_t length, double alpha) {
    return length_score(log_probability, length, LengthPenalty::kGnmt, alpha);
  };
  EXPECT_EQ(power(-0.9, 2, 0), -0.9);
  EXPECT_EQ(gnmt(-1.2, 4, 0), -1.2);
  EXPECT_NEAR(power(-0.9, 2, 0.6), -0.593779, 1e-6);
  EXPECT_NEAR(power(-1.2, 4, 0.6), -0.522330, 1e-6);
  EXPECT_NEAR(power(-0.9, 2, 1), -0.45, 1e-12);
  EXPECT_NEAR(power(-1.2, 4, 1), -0.30, 1e-12);
  EXPECT_NEAR(gnmt(-0.9, 2, 0.6), -0.820492, 1e-6);
  EXPECT_NEAR(gnmt(-1.2, 4, 0.6), -0.940863, 1e-6);
  EXPECT_NEAR(gnmt(-0.9, 2, 1), -0.771429, 1e-6);
  EXPECT_NEAR(gnmt(-1.2, 4, 1), -0.80, 1e-12);
}

// The same two hypotheses, found by a search: A = 3 E, B = 4 5 6 E.
// joeynmt/joeynmt#149, OpenNMT/OpenNMT-tf#456
TEST(Search, RanksByThePenaltyThatIsAskedFor) {
  const double a = std::exp(-0.9), b = std::exp(-1.2);
  Follows follows(7, std::vector<double>(7, 0));
  follows[1] = {0, 0, 0, a, b, 0, 0};
  follows[3][2] = 1;
  follows[4][5] = follows[5][6] = follows[6][2] = 1;
  const auto best = [&](LengthPenalty penalty, double alpha) {
    const auto found =
        search(follows, 3, {.beam = 4, .nbest = 1, .length_penalty = penalty, .alpha = alpha});
    return found[0].tokens.size() == 1 ? 'A' : 'B';
  };
  EXPECT_EQ(best(LengthPenalty::kPower, 0), 'A');
  EXPECT_EQ(best(LengthPenalty::kPower, 0.6), 'B');
  EXPECT_EQ(best(LengthPenalty::kPower, 1), 'B');
  EXPECT_EQ(best(LengthPenalty::kGnmt, 0.6), 'A');
  EXPECT_EQ(best(LengthPenalty::kGnmt, 1), 'A');
}

// A better end further on does not tempt greedy search.
// huggingface/transformers#8722
TEST(Search, BeamOfOneTakesTheFirstEnd) {
  Follows follows(5, std::vector<double>(5, 0));
  follows[1] = {0, 0, .4, .35, .25};
  follows[3] = {0, 0, 1, 0, 0};
  follows[4] = {0, 0, 1, 0, 0};
  const auto greedy = search(follows, 5, {.beam = 1, .alpha = 1});
  ASSERT_THAT(texts_of(greedy), ElementsAre("E"));
  EXPECT_NEAR(greedy[0].score, std::log(.4), 1e-6);
  const auto wide = search(follows, 5, {.beam = 2, .alpha = 1});
  ASSERT_THAT(texts_of(wide), ElementsAre("aE"));
  EXPECT_NEAR(wide[0].score, std::log(.35) / 2, 1e-6);
}

TEST(Search, AtTheLimitOnlyTheEndMayFollow) {
  Follows follows(5, std::vector<double>(5, 0));
  follows[1] = {0, 0, .1, .9, 0};
  follows[3] = {0, 0, .8, .2, 0};
  const auto ended = search(follows, 1, {.beam = 1, .alpha = 0});
  ASSERT_THAT(texts_of(ended), ElementsAre("aE"));
  EXPECT_NEAR(ended[0].log_probability, std::log(.72), 1e-6);
  follows[3] = {0, 0, .2, .8, 0};
  const auto cut = search(follows, 2, {.beam = 1, .alpha = 1});
  ASSERT_THAT(texts_of(cut), ElementsAre("aa"));
  EXPECT_NEAR(cut[0].log_probability, std::log(.72), 1e-6);
  EXPECT_NEAR(cut[0].score, std::log(.72) / 2, 1e-6);
  const auto both = search(follows, 2, {.beam = 2, .nbest = 2, .alpha = 0});
  EXPECT_THAT(texts_of(both), ElementsAre("aE", "aaE"));
  const auto all = search(follows, 1, {.beam = 3, .nbest = 3, .alpha = 0});
  EXPECT_THAT(texts_of(all), ElementsAre("aE", "E"));
  // Finished ones come first, however poor.
  follows[1] = {0, 0, .4, .5, .1};
  follows[3] = {0, 0, .1, .9, 0};
  follows[4] = {0, 0, .05, 0, .95};
  const auto mixed = search(follows, 1, {.beam = 2, .nbest = 2, .alpha = 0});
  EXPECT_THAT(texts_of(mixed), ElementsAre("E", "a"));
}

// Every sequence up to the limit, by hand.
void enumerate(const Follows& follows, int64_t limit, std::vector<int32_t> tokens, double sum,
               const SearchConfig& config, std::vector<Hypothesis>& all) {
  const std::vector<double>& next =
      follows[static_cast<size_t>(tokens.empty() ? 1 : tokens.back())];
  const auto add = [&](double log_probability, bool finished) {
    const int64_t length = static_cast<int64_t>(tokens.size()) + finished;
    all.push_back({tokens, log_probability,
                   length_score(log_probability, length, config.length_penalty, config.alpha),
                   finished});
  };
  add(sum + std::log(next[2]), true);
  if (static_cast<int64_t>(tokens.size()) == limit) return;
  for (int32_t token = 3; token < static_cast<int32_t>(next.size()); ++token) {
    tokens.push_back(token);
    enumerate(follows, limit, tokens, sum + std::log(next[static_cast<size_t>(token)]), config,
              all);
    tokens.pop_back();
  }
}

TEST(Search, AWideBeamFindsWhatAnExhaustiveSearchFinds) {
  const Follows follows{{0, 0, 0, 0, 0, 0},         {0, 0, .05, .41, .33, .21},
                        {0, 0, 0, 0, 0, 0},         {0, 0, .07, .23, .31, .39},
                        {0, 0, .11, .57, .03, .29}, {0, 0, .17, .13, .51, .19}};
  for (const LengthPenalty penalty : {LengthPenalty::kPower, LengthPenalty::kGnmt}) {
    for (const double alpha : {0.0, 0.6, 1.0, 2.0}) {
      const SearchConfig config{
          .beam = 128, .nbest = 30, .length_penalty = penalty, .alpha = alpha};
      std::vector<Hypothesis> all;
      enumerate(follows, 3, {}, 0, config, all);
      ASSERT_EQ(all.size(), 1u + 3 + 9 + 27);
      std::sort(all.begin(), all.end(),
                [](const auto& a, const auto& b) { return a.score > b.score; });
      const auto found = search(follows, 3, config);
      ASSERT_EQ(found.size(), 30u);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].tokens, all[i].tokens) << i;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-5);
        EXPECT_TRUE(found[i].finished);
      }
    }
  }
}

// Hypotheses that cannot win leave the batch, sentences that are decided leave it whole, and what
// stays is named by its old row.
TEST(Search, WhatCannotWinLeavesTheBatch) {
  SearchModel model = first_order(kPublished);
  std::vector<size_t> rows;
  const auto step = model.step;
  model.step = [&](std::span<const int32_t> tokens, int64_t count) {
    rows.push_back(tokens.size());
    return step(tokens, count);
  };
  std::vector<std::vector<int32_t>> origins, offsets;
  model.select = [&](const std::vector<int32_t>& chosen, std::vector<int32_t> row_offsets) {
    origins.push_back(chosen);
    offsets.push_back(std::move(row_offsets));
  };
  // "bE" has log .36; "aa" and "ab", log .2 and log .15, cannot reach it any more.
  const std::vector<int64_t> limits{4};
  const SearchConfig one{.beam = 2, .nbest = 1, .alpha = 0};
  EXPECT_THAT(texts_of(beam_search(model, limits, one)[0]), ElementsAre("bE"));
  EXPECT_THAT(rows, ElementsAre(1, 2));
  EXPECT_THAT(origins, ElementsAre(ElementsAre(0, 0)));
  EXPECT_THAT(offsets, ElementsAre(ElementsAre(0, 2)));
  // With a length penalty of 1 "bE" has -0.51, and "aa" might come to log .2 / 5 = -0.32.
  rows.clear();
  origins.clear();
  offsets.clear();
  const SearchConfig by_length{.beam = 2, .nbest = 1, .alpha = 1};
  EXPECT_THAT(texts_of(beam_search(model, limits, by_length)[0]), ElementsAre("bE"));
  EXPECT_THAT(rows, ElementsAre(1, 2, 2, 1));
}

TEST(Search, SentencesEndByThemselves) {
  const std::vector<int64_t> limits{1, 4, 2};
  const SearchConfig config{.beam = 3, .nbest = 2, .alpha = 1};
  const auto together = beam_search(first_order(kPublished), limits, config);
  ASSERT_EQ(together.size(), 3u);
  for (size_t i = 0; i < limits.size(); ++i) {
    const auto alone = search(kPublished, limits[i], config);
    EXPECT_EQ(texts_of(together[i]), texts_of(alone));
    for (const Hypothesis& hypothesis : together[i])
      EXPECT_LE(hypothesis.tokens.size(), static_cast<size_t>(limits[i]));
  }
  EXPECT_THAT(beam_search(first_order(kPublished), {}, config), IsEmpty());
}

TEST(Search, RefusesWhatCannotBe) {
  const auto error = [](const SearchConfig& config) {
    return error_of([&] { search(kPublished, 4, config); });
  };
  EXPECT_EQ(error({.beam = 2, .nbest = 3}),
            "search: needs 1 <= nbest <= beam, got nbest 3 and beam 2");
  EXPECT_THAT(error({.beam = 0}), HasSubstr("got nbest 1 and beam 0"));
  EXPECT_THAT(error({.beam = 2, .nbest = 0}), HasSubstr("got nbest 0 and beam 2"));
  EXPECT_THAT(error({.alpha = -1}), HasSubstr("alpha must be at least 0 and finite, got -1"));
  EXPECT_THAT(error({.alpha = std::nan("")}), HasSubstr("got nan"));
  EXPECT_THAT(error({.length_factor = std::nan("")}), HasSubstr("lengths must not be negative"));
  EXPECT_THAT(error({.length_extra = -1}), HasSubstr("extra -1"));
  EXPECT_EQ(error_of([] { search(kPublished, 0, {}); }),
            "search: a sentence needs room for a token, got a limit of 0");
  Follows broken = kPublished;
  broken[3].assign(5, std::nan(""));
  EXPECT_EQ(error_of([&] { search(broken, 4, {}); }),
            "search: the log-probabilities of token 2 are NaN; are the model's parameters finite?");
  broken[1].assign(5, 0);
  EXPECT_EQ(error_of([&] { search(broken, 4, {}); }),
            "search: the model gives every way to go on the probability 0");
}

}  // namespace
}  // namespace gs
