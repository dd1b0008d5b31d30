#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/ops/top_log_softmax.h"
#include "models/transformer.h"

namespace gs {

// How a hypothesis of l tokens, the end mark included, is scored from its log-probability.
enum class LengthPenalty {
  kPower,  // log p / l^alpha
  kGnmt    // log p / ((5 + l) / 6)^alpha, Wu et al., "Google's neural machine translation system",
           // 2016
};

struct SearchConfig {
  int64_t beam = 1;   // hypotheses that are followed; 1 is greedy search, ended by its end mark
  int64_t nbest = 1;  // hypotheses wanted for each sentence, at most `beam`
  LengthPenalty length_penalty = LengthPenalty::kPower;
  double alpha = 1;          // at least 0; 0 ranks by log-probability
  double length_factor = 2;  // at most factor * source tokens + extra tokens are made
  int64_t length_extra = 10;
  int64_t maximum_length = 0;  // nor more than these tokens; 0 is no further limit
  int64_t minimum_length = 0;  // tokens before which the end mark may not come
  int64_t no_repeat = 0;       // no n tokens in a row come twice in a hypothesis; 0 lets them
  bool unknown = true;         // whether <unk> may be produced
};

// Refuses what no search can do.
void check_config(const SearchConfig& config);

struct Hypothesis {
  std::vector<int32_t> tokens;  // without marks
  double log_probability = 0;   // of the tokens, and of the end mark if it is finished
  double score = 0;             // with the length penalty
  bool finished = false;        // false: cut at the length limit
};

double length_score(double log_probability, int64_t length, LengthPenalty penalty, double alpha);

// What a search asks of a model. Rows are hypotheses, those of one sentence side by side.
struct SearchModel {
  // Takes the next token of each row and returns the `count` most probable ones of what follows,
  // or all, if there are fewer.
  std::function<TopLogSoftmax(std::span<const int32_t> tokens, int64_t count)> step;
  // Goes on with these rows; row_offsets (B + 1) are those of each sentence.
  std::function<void(const std::vector<int32_t>& rows, std::vector<int32_t> row_offsets)> select;
  int32_t begin = 1, end = 2;
  std::vector<int32_t> never = {};  // tokens that are not produced
};

// The best hypotheses of each sentence, best first; `maximum_lengths` limits the tokens of each,
// the end mark not counted. A search ends when no hypothesis that is followed can still win, and
// finished sentences leave the batch. At the limit only the end mark may follow, whatever the
// minimum length; hypotheses that are cut there are given only where fewer than nbest were
// finished. A hypothesis that minimum length and repetitions leave no way to go on may end, too, or
// is cut, if its end has the probability 0. Log-probabilities of NaN are refused.
std::vector<std::vector<Hypothesis>> beam_search(const SearchModel& model,
                                                 std::span<const int64_t> maximum_lengths,
                                                 const SearchConfig& config);

// Translations of source sentences, each ended by its end mark, over cached keys and values.
std::vector<std::vector<Hypothesis>> translate(const Transformer& transformer,
                                               const Sequences& source, const SearchConfig& config);

}  // namespace gs
