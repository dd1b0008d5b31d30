// The search over a Transformer, held against searches that decode every prefix anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "framework/ops/softmax.h"
#include "models/search.h"
#include "tests/models/small_models.h"
#include "tests/models/top_of.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::rows_of;
using test::sequences;
using test::small_config;
using test::small_transformer;
using testing::HasSubstr;

const std::vector<std::vector<int32_t>> kSources{
    {5, 6, 7, 2}, {8, 4, 9, 12, 3, 10, 2}, {2}, {11, 4, 2}, {5, 5, 5, 5, 2}};

// What follows `prefix` of one sentence, without any cache.
std::vector<double> following(const Transformer& model, const std::vector<int32_t>& source,
                              const std::vector<int32_t>& prefix) {
  const NoGrad no_grad;
  std::vector<int32_t> inputs{1};
  inputs.insert(inputs.end(), prefix.begin(), prefix.end());
  const Tensor scores = log_softmax(model(sequences({source}), sequences({inputs})));
  return rows_of(scores, scores.size(0) - 1, 1);
}

Hypothesis greedy(const Transformer& model, const std::vector<int32_t>& source, size_t limit) {
  Hypothesis result;
  while (true) {
    const std::vector<double> next = following(model, source, result.tokens);
    const int32_t token =
        static_cast<int32_t>(std::max_element(next.begin() + 2, next.end()) - next.begin());
    if (token != 2 && result.tokens.size() == limit) return result;
    result.log_probability += next[static_cast<size_t>(token)];
    if (token == 2) {
      result.finished = true;
      return result;
    }
    result.tokens.push_back(token);
  }
}

TEST(TransformerSearch, BeamOfOneIsGreedy) {
  int finished = 0, cut = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const auto model = small_transformer(seed);
    const auto found = translate(*model, sequences(kSources), {.length_factor = 1});
    ASSERT_EQ(found.size(), kSources.size());
    for (size_t i = 0; i < kSources.size(); ++i) {
      const Hypothesis expected = greedy(*model, kSources[i], kSources[i].size() + 10);
      ASSERT_EQ(found[i].size(), 1u);
      EXPECT_EQ(found[i][0].tokens, expected.tokens);
      EXPECT_EQ(found[i][0].finished, expected.finished);
      EXPECT_NEAR(found[i][0].log_probability, expected.log_probability, 1e-4);
      ++(expected.finished ? finished : cut);
    }
  }
  EXPECT_GT(finished, 0);
  EXPECT_GT(cut, 0);
}

// meta-pytorch/torchtune#959
TEST(TransformerSearch, CachedEqualsUncached) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto model = small_transformer(seed);
    const SearchConfig config{.beam = 4, .nbest = 4, .alpha = 0.6};
    const auto cached = translate(*model, sequences(kSources), config);
    for (size_t i = 0; i < kSources.size(); ++i) {
      std::vector<std::vector<int32_t>> prefixes{{}};
      SearchModel plain;
      plain.never = {0, 1};
      plain.step = [&](std::span<const int32_t> tokens, int64_t count) {
        std::vector<std::vector<double>> rows;
        for (size_t r = 0; r < tokens.size(); ++r) {
          if (tokens[r] != 1) prefixes[r].push_back(tokens[r]);
          rows.push_back(following(*model, kSources[i], prefixes[r]));
        }
        return test::top_of(rows, count);
      };
      plain.select = [&](const std::vector<int32_t>& rows, const std::vector<int32_t>&) {
        std::vector<std::vector<int32_t>> chosen;
        for (const int32_t row : rows) chosen.push_back(prefixes[static_cast<size_t>(row)]);
        prefixes = chosen;
      };
      const std::vector<int64_t> limits{
          std::min<int64_t>(2 * static_cast<int64_t>(kSources[i].size()) + 10, 23)};
      const auto uncached = beam_search(plain, limits, config)[0];
      ASSERT_EQ(cached[i].size(), uncached.size());
      for (size_t h = 0; h < uncached.size(); ++h) {
        EXPECT_EQ(cached[i][h].tokens, uncached[h].tokens) << i << " " << h;
        EXPECT_EQ(cached[i][h].finished, uncached[h].finished);
        EXPECT_NEAR(cached[i][h].log_probability, uncached[h].log_probability, 1e-4);
      }
    }
  }
}

bool repeats(const std::vector<int32_t>& tokens, int64_t n) {
  if (n == 0 || static_cast<int64_t>(tokens.size()) < n) return false;
  const auto last = tokens.end() - n;
  return std::search(tokens.begin(), tokens.end() - 1, last, tokens.end()) != tokens.end() - 1;
}

// The search as it is defined: every prefix decoded anew, every hypothesis followed to the limit.
std::vector<Hypothesis> plain_search(const Transformer& model, const std::vector<int32_t>& source,
                                     int64_t limit, const SearchConfig& config) {
  std::vector<Hypothesis> live{{}}, finished;
  const auto add = [&](Hypothesis hypothesis, bool is_finished) {
    const int64_t length = static_cast<int64_t>(hypothesis.tokens.size()) + is_finished;
    hypothesis.finished = is_finished;
    hypothesis.score =
        length_score(hypothesis.log_probability, length, config.length_penalty, config.alpha);
    finished.push_back(hypothesis);
  };
  for (int64_t length = 0; length <= limit && !live.empty(); ++length) {
    std::vector<Hypothesis> ways;  // each with its next token at the end
    for (const Hypothesis& hypothesis : live) {
      const std::vector<double> next = following(model, source, hypothesis.tokens);
      const auto add_way = [&](int32_t token) {
        ways.push_back(hypothesis);
        ways.back().tokens.push_back(token);
        ways.back().log_probability += next[static_cast<size_t>(token)];
      };
      const size_t before = ways.size();
      if (length >= std::min(config.minimum_length, limit)) add_way(2);
      for (int32_t token = config.unknown ? 3 : 4; token < 11; ++token) {
        add_way(token);
        if (repeats(ways.back().tokens, config.no_repeat)) ways.pop_back();
      }
      if (ways.size() == before) add_way(2);
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.log_probability > b.log_probability;
    });
    const std::vector<Hypothesis> before = std::exchange(live, {});
    std::vector<std::vector<int32_t>> ended;
    for (size_t i = 0; i < ways.size(); ++i) {
      Hypothesis way = ways[i];
      const bool ends = way.tokens.back() == 2;
      if (!ends && length < limit && live.size() < static_cast<size_t>(config.beam))
        live.push_back(way);
      if (!ends || i >= static_cast<size_t>(config.beam)) continue;
      way.tokens.pop_back();
      ended.push_back(way.tokens);
      add(way, true);
    }
    for (const Hypothesis& cut : before) {
      if (length == limit && finished.size() < static_cast<size_t>(config.nbest) &&
          std::find(ended.begin(), ended.end(), cut.tokens) == ended.end())
        add(cut, false);
    }
  }
  std::stable_sort(finished.begin(), finished.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.finished != b.finished ? a.finished : a.score > b.score;
  });
  finished.resize(std::min(finished.size(), static_cast<size_t>(config.nbest)));
  return finished;
}

void expect_plain(const Transformer& model, const SearchConfig& config) {
  const auto found = translate(model, sequences(kSources), config);
  for (size_t i = 0; i < kSources.size(); ++i) {
    const auto expected = plain_search(model, kSources[i], config.length_extra, config);
    ASSERT_EQ(found[i].size(), expected.size());
    for (size_t h = 0; h < expected.size(); ++h) {
      EXPECT_EQ(found[i][h].tokens, expected[h].tokens);
      EXPECT_EQ(found[i][h].finished, expected[h].finished);
      EXPECT_NEAR(found[i][h].score, expected[h].score, 1e-5);
    }
  }
}

// Hypotheses and sentences leave the batch as soon as they cannot change the results, and only
// then.
TEST(TransformerSearch, EndsEarlyWithoutChangingTheResults) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto model = small_transformer(seed);
    for (const auto& [beam, nbest] : {std::pair<int64_t, int64_t>{2, 1}, {3, 1}, {3, 2}, {5, 5}}) {
      for (const double alpha : {0.0, 0.6, 1.0}) {
        for (const int64_t extra : {1, 3, 9}) {
          expect_plain(*model, {.beam = beam,
                                .nbest = nbest,
                                .alpha = alpha,
                                .length_factor = 0,
                                .length_extra = extra});
        }
      }
    }
  }
}

TEST(TransformerSearch, EndsEarlyWithBlockedTokens) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto model = small_transformer(seed);
    for (const int64_t minimum_length : {0, 2, 7, 12}) {
      for (const int64_t no_repeat : {0, 1, 2}) {
        for (const auto penalty : {LengthPenalty::kPower, LengthPenalty::kGnmt}) {
          expect_plain(*model, {.beam = 3,
                                .nbest = 2,
                                .length_penalty = penalty,
                                .alpha = 0.6,
                                .length_factor = 0,
                                .length_extra = 9,
                                .minimum_length = minimum_length,
                                .no_repeat = no_repeat,
                                .unknown = no_repeat == 2});
        }
      }
    }
  }
}

// OpenNMT/OpenNMT-py#2208, pytorch/translate#308
TEST(TransformerSearch, NoTranslationDependsOnItsBatch) {
  const auto model = small_transformer(3);
  const SearchConfig config{.beam = 3, .nbest = 3};
  const auto together = translate(*model, sequences(kSources), config);
  auto reversed_sources = kSources;
  std::reverse(reversed_sources.begin(), reversed_sources.end());
  const auto reversed = translate(*model, sequences(reversed_sources), config);
  for (size_t i = 0; i < kSources.size(); ++i) {
    const auto alone = translate(*model, sequences({kSources[i]}), config)[0];
    for (const auto& other : {together[i], reversed[kSources.size() - 1 - i]}) {
      ASSERT_EQ(other.size(), alone.size());
      for (size_t h = 0; h < alone.size(); ++h) {
        EXPECT_EQ(other[h].tokens, alone[h].tokens);
        EXPECT_NEAR(other[h].score, alone[h].score, 1e-5);
      }
    }
  }
}

TEST(TransformerSearch, GivesWholeSortedTranslationsWithinTheLimits) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto model = small_transformer(seed);
    for (const auto& hypotheses :
         translate(*model, sequences(kSources),
                   {.beam = 5, .nbest = 5, .length_factor = 0, .length_extra = 3})) {
      ASSERT_EQ(hypotheses.size(), 5u);
      for (size_t h = 0; h < hypotheses.size(); ++h) {
        EXPECT_LE(hypotheses[h].tokens.size(), 3u);
        for (const int32_t token : hypotheses[h].tokens) EXPECT_GT(token, 2);
        if (h == 0) continue;
        EXPECT_NE(hypotheses[h].tokens, hypotheses[h - 1].tokens);
        if (hypotheses[h].finished == hypotheses[h - 1].finished) {
          EXPECT_LE(hypotheses[h].score, hypotheses[h - 1].score);
        } else {
          EXPECT_TRUE(hypotheses[h - 1].finished);
        }
      }
    }
    // The model's own limit holds, too.
    for (const auto& hypotheses : translate(*model, sequences(kSources), {.length_factor = 1e300}))
      EXPECT_LE(hypotheses[0].tokens.size(), 23u);
    for (const auto& hypotheses :
         translate(*model, sequences(kSources), {.maximum_length = 2, .minimum_length = 2}))
      EXPECT_EQ(hypotheses[0].tokens.size(), 2u);
  }
}

TEST(TransformerSearch, TakesNothingAndEmptySentences) {
  const auto model = small_transformer(1);
  EXPECT_TRUE(translate(*model, Sequences(), {}).empty());
  const auto found = translate(*model, sequences({{}, {5, 2}}), {.beam = 2});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1][0].tokens, translate(*model, sequences({{5, 2}}), {.beam = 2})[0][0].tokens);
}

TEST(TransformerSearch, RecordsNothing) {
  const auto model = small_transformer(1);
  const int64_t nodes = live_nodes();
  translate(*model, sequences(kSources), {.beam = 4});
  EXPECT_EQ(live_nodes(), nodes);
}

TEST(TransformerSearch, RefusesAModelInTrainingAndABeamTooNarrow) {
  const auto model = small_transformer(1);
  EXPECT_THAT(error_of([&] { translate(*model, sequences(kSources), {.beam = 1, .nbest = 2}); }),
              HasSubstr("needs 1 <= nbest <= beam, got nbest 2 and beam 1"));
  EXPECT_THAT(error_of([&] {
                translate(*model, sequences(kSources), {.length_factor = 0, .length_extra = 0});
              }),
              HasSubstr("got a limit of 0"));
  model->train();
  EXPECT_EQ(error_of([&] { translate(*model, sequences(kSources), {}); }),
            "translate: the model is in training; call evaluate() first");
}

}  // namespace
}  // namespace gs
