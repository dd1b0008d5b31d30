#include "models/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/profiler.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

// A hypothesis that is followed: its last token stands in the sentence's tree.
struct Live {
  int32_t node = 0;
  double log_probability = 0;
};

// A token and the one before it.
struct Node {
  int32_t parent, token;
};

// What may follow each row of the batch, most probable first: (R, K) each.
struct Following {
  std::vector<float> log_probabilities;
  std::vector<int32_t> tokens;
  int64_t count;  // K
};

// One way to go on: row of the batch, next token, log-probability of the whole.
struct Candidate {
  double log_probability;
  int64_t row;
  int32_t token;
};

// More probable first; ties by row and token, so that results repeat.
bool better(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.row != b.row ? a.row < b.row : a.token < b.token;
}

// The best `count` candidates so far, in a heap whose front is the worst of them.
class Best {
 public:
  explicit Best(size_t count) : count_(count) {}

  void offer(const Candidate& candidate) {
    if (heap_.size() == count_) {
      if (!better(candidate, heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end(), better);
      heap_.pop_back();
    }
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), better);
  }
  double worst() const {
    return heap_.size() < count_ ? -std::numeric_limits<double>::infinity()
                                 : heap_.front().log_probability;
  }
  std::vector<Candidate> sorted() && {
    std::sort_heap(heap_.begin(), heap_.end(), better);
    return std::move(heap_);
  }

 private:
  size_t count_;
  std::vector<Candidate> heap_;
};

// Appends the tokens that would make the last of n tokens in a row that `tokens` has already.
void append_repeats(std::span<const int32_t> tokens, int64_t n, std::vector<int32_t>& repeats) {
  if (static_cast<int64_t>(tokens.size()) < n) return;
  const size_t before = static_cast<size_t>(n - 1);
  const std::span<const int32_t> last = tokens.last(before);
  for (size_t i = 0; i + before < tokens.size(); ++i) {
    if (std::equal(last.begin(), last.end(), tokens.begin() + static_cast<std::ptrdiff_t>(i)))
      repeats.push_back(tokens[i + before]);
  }
}

// The search of one sentence.
class Sentence {
 public:
  Sentence(int64_t maximum_length, const SearchConfig& config, const SearchModel& model)
      : config_(config),
        model_(model),
        maximum_length_(maximum_length),
        minimum_length_(std::min(config.minimum_length, maximum_length)),
        nodes_{{-1, model.begin}},
        live_{Live{}} {}

  int64_t rows() const { return static_cast<int64_t>(live_.size()); }
  int32_t last_token(int64_t i) const { return node(live_[static_cast<size_t>(i)]).token; }

  // Finds the tokens that may not follow next, and gives the most for one hypothesis.
  int64_t block() {
    blocked_.clear();
    const bool is_short = length_ < minimum_length_;
    if (!is_short && config_.no_repeat == 0) return 0;
    size_t most = 0;
    for (const Live& live : live_) {
      std::vector<int32_t>& blocked = blocked_.emplace_back();
      if (is_short) blocked.push_back(model_.end);
      if (config_.no_repeat > 0)
        append_repeats(tokens_until(live.node), config_.no_repeat, blocked);
      most = std::max(most, blocked.size());
    }
    return static_cast<int64_t>(most);
  }

  // Goes one token on. `first_row` is this sentence's first row of the batch; the rows that its new
  // hypotheses come from are appended to `origins`.
  void advance(const Following& following, int64_t first_row, std::vector<int32_t>& origins) {
    const std::vector<Candidate> candidates = expand(following, first_row);
    const size_t beam = static_cast<size_t>(config_.beam);
    const bool is_full = length_ == maximum_length_;
    std::vector<Live> next;
    std::vector<int32_t> rows;
    for (size_t i = 0; i < candidates.size() && next.size() < beam; ++i) {
      const Candidate& candidate = candidates[i];
      const Live& parent = live_[static_cast<size_t>(candidate.row - first_row)];
      if (candidate.token == model_.end) {
        if (i < beam) finish(parent.node, candidate.log_probability, true);
        continue;
      }
      if (is_full) continue;
      next.push_back({static_cast<int32_t>(nodes_.size()), candidate.log_probability});
      nodes_.push_back({parent.node, candidate.token});
      rows.push_back(static_cast<int32_t>(candidate.row));
    }
    if (is_full || (next.empty() && !blocked_.empty())) cut(first_row, candidates);
    live_ = std::move(next);
    ++length_;
    drop_hopeless();
    origins.insert(origins.end(), rows.begin(), rows.begin() + this->rows());
  }

  std::vector<Hypothesis> results() && {
    check(!finished_.empty(), "search: the model gives every way to go on the probability 0");
    sort_finished();
    finished_.resize(std::min(finished_.size(), static_cast<size_t>(config_.nbest)));
    return std::move(finished_);
  }

 private:
  const Node& node(const Live& live) const { return nodes_[static_cast<size_t>(live.node)]; }

  bool may_follow(int32_t token, size_t live) const {
    const auto holds = [&](const std::vector<int32_t>& tokens) {
      return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
    };
    return !holds(model_.never) && (blocked_.empty() || !holds(blocked_[live]));
  }

  std::vector<Candidate> expand(const Following& following, int64_t first_row) const {
    // Twice the beam: so many may end and still leave a full beam to follow.
    Best best(static_cast<size_t>(2 * config_.beam));
    for (int64_t row = first_row; row < first_row + rows(); ++row) {
      const size_t live = static_cast<size_t>(row - first_row);
      const double before = live_[live].log_probability;
      double blocked_end = -std::numeric_limits<double>::infinity();
      bool is_stuck = true;
      for (int64_t i = row * following.count; i < (row + 1) * following.count; ++i) {
        const double next = following.log_probabilities[static_cast<size_t>(i)];
        const int32_t token = following.tokens[static_cast<size_t>(i)];
        check(!std::isnan(next),
              "search: the log-probabilities of token {} are NaN; are the model's parameters "
              "finite?",
              length_ + 1);
        const double sum = before + next;
        if (sum == -std::numeric_limits<double>::infinity()) break;
        if (sum < best.worst()) {
          is_stuck = false;
          break;
        }
        if (may_follow(token, live)) {
          best.offer({sum, row, token});
          is_stuck = false;
        } else if (token == model_.end) {
          blocked_end = sum;
        }
      }
      if (is_stuck && std::isfinite(blocked_end)) best.offer({blocked_end, row, model_.end});
    }
    return std::move(best).sorted();
  }

  std::vector<int32_t> tokens_until(int32_t node) const {
    std::vector<int32_t> tokens;
    for (; node > 0; node = nodes_[static_cast<size_t>(node)].parent)
      tokens.push_back(nodes_[static_cast<size_t>(node)].token);
    std::reverse(tokens.begin(), tokens.end());
    return tokens;
  }

  void finish(int32_t node, double log_probability, bool finished) {
    const int64_t length = length_ + (finished ? 1 : 0);
    finished_.push_back(
        {tokens_until(node), log_probability,
         length_score(log_probability, length, config_.length_penalty, config_.alpha), finished});
  }

  // Fills the results with hypotheses at the length limit, but for those that have just ended.
  void cut(int64_t first_row, const std::vector<Candidate>& candidates) {
    std::vector<bool> has_ended(live_.size());
    for (size_t i = 0; i < std::min(candidates.size(), static_cast<size_t>(config_.beam)); ++i) {
      if (candidates[i].token == model_.end)
        has_ended[static_cast<size_t>(candidates[i].row - first_row)] = true;
    }
    for (size_t i = 0; i < live_.size(); ++i) {
      if (!has_ended[i] && static_cast<int64_t>(finished_.size()) < config_.nbest)
        finish(live_[i].node, live_[i].log_probability, false);
    }
  }

  // Leaves off what can no longer enter the results. It stands behind all that can, and so would
  // all that goes on from it: the others go on as they would beside it.
  void drop_hopeless() {
    if (config_.beam == 1 && !finished_.empty()) live_.clear();
    sort_finished();
    const size_t wanted = static_cast<size_t>(config_.nbest);
    if (finished_.size() < wanted) return;
    // A log-probability only falls, and its length can help it no further than the limit.
    while (!live_.empty() &&
           length_score(live_.back().log_probability, maximum_length_ + 1, config_.length_penalty,
                        config_.alpha) <= finished_[wanted - 1].score) {
      live_.pop_back();
    }
  }

  void sort_finished() {
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) {
                       if (a.finished != b.finished) return a.finished;
                       return a.score > b.score;
                     });
  }

  const SearchConfig& config_;
  const SearchModel& model_;
  int64_t maximum_length_, minimum_length_;
  int64_t length_ = 0;                         // tokens of those that are followed
  std::vector<Node> nodes_;                    // the root is the begin mark
  std::vector<Live> live_;                     // most probable first
  std::vector<std::vector<int32_t>> blocked_;  // for each of them, or nothing where all may follow
  std::vector<Hypothesis> finished_;
};

}  // namespace

void check_config(const SearchConfig& config) {
  check(config.beam >= 1 && config.nbest >= 1 && config.nbest <= config.beam,
        "search: needs 1 <= nbest <= beam, got nbest {} and beam {}", config.nbest, config.beam);
  check(config.alpha >= 0 && std::isfinite(config.alpha),
        "search: alpha must be at least 0 and finite, got {}", config.alpha);
  check(config.length_factor >= 0 && config.length_extra >= 0,
        "search: lengths must not be negative, got factor {} and extra {}", config.length_factor,
        config.length_extra);
  check(config.minimum_length >= 0 && config.maximum_length >= 0 && config.no_repeat >= 0,
        "search: the minimum and maximum length and the tokens that may not repeat must not be "
        "negative, got {}, {} and {}",
        config.minimum_length, config.maximum_length, config.no_repeat);
  check(config.maximum_length == 0 || config.minimum_length <= config.maximum_length,
        "search: the minimum length must be at most the maximum, got {} and {}",
        config.minimum_length, config.maximum_length);
}

double length_score(double log_probability, int64_t length, LengthPenalty penalty, double alpha) {
  const double l = static_cast<double>(std::max<int64_t>(length, 1));
  return log_probability / std::pow(penalty == LengthPenalty::kPower ? l : (5 + l) / 6, alpha);
}

std::vector<std::vector<Hypothesis>> beam_search(const SearchModel& model,
                                                 std::span<const int64_t> maximum_lengths,
                                                 const SearchConfig& config) {
  const OperationTimer timer("beam_search", Phase::kOther);
  check_config(config);
  const NoGrad no_grad;
  std::vector<Sentence> sentences;
  for (const int64_t length : maximum_lengths) {
    check(length >= 1, "search: a sentence needs room for a token, got a limit of {}", length);
    sentences.emplace_back(length, config, model);
  }
  // So many that the 2 * beam best of a sentence are among those of its rows.
  const int64_t count = 2 * config.beam + static_cast<int64_t>(model.never.size());
  while (true) {
    std::vector<int32_t> tokens;
    int64_t blocked = 0;
    for (Sentence& sentence : sentences) {
      for (int64_t i = 0; i < sentence.rows(); ++i) tokens.push_back(sentence.last_token(i));
      blocked = std::max(blocked, sentence.block());
    }
    if (tokens.empty()) break;
    const TopLogSoftmax top = model.step(tokens, count + blocked);
    const Following following{top.log_probabilities.values<float>(), top.classes.values<int32_t>(),
                              top.classes.size(1)};
    std::vector<int32_t> origins, row_offsets{0};
    int64_t first_row = 0;
    for (Sentence& sentence : sentences) {
      const int64_t rows = sentence.rows();
      if (rows > 0) sentence.advance(following, first_row, origins);
      first_row += rows;
      row_offsets.push_back(static_cast<int32_t>(origins.size()));
    }
    if (origins.empty()) break;
    model.select(origins, std::move(row_offsets));
  }
  std::vector<std::vector<Hypothesis>> results;
  for (Sentence& sentence : sentences) results.push_back(std::move(sentence).results());
  return results;
}

std::vector<std::vector<Hypothesis>> translate(const Transformer& transformer,
                                               const Sequences& source,
                                               const SearchConfig& config) {
  check_config(config);
  check(!transformer.training(), "translate: the model is in training; call evaluate() first");
  const NoGrad no_grad;
  std::vector<int64_t> maximum_lengths;
  for (int64_t i = 0; i < source.count(); ++i) {
    const double length = config.length_factor * static_cast<double>(source.length(i)) +
                          static_cast<double>(config.length_extra);
    // One position is taken by the begin mark.
    int64_t positions = transformer.config.maximum_length - 1;
    if (config.maximum_length > 0) positions = std::min(positions, config.maximum_length);
    maximum_lengths.push_back(
        static_cast<int64_t>(std::clamp(length, 0.0, static_cast<double>(positions))));
  }
  DecoderState state = transformer.begin(transformer.encode(source));
  SearchModel model;
  model.begin = kBeginId;
  model.end = kEndId;
  model.never = {kPaddingId, kBeginId};
  if (!config.unknown) model.never.push_back(kUnknownId);
  model.step = [&](std::span<const int32_t> tokens, int64_t count) {
    return transformer.step(tokens, state, count);
  };
  model.select = [&](const std::vector<int32_t>& rows, std::vector<int32_t> row_offsets) {
    Transformer::select(state, rows, std::move(row_offsets));
  };
  return beam_search(model, maximum_lengths, config);
}

}  // namespace gs
