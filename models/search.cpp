#include "models/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/profiler.h"
#include "framework/ops/softmax.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

// A hypothesis that is followed.
struct Live {
  std::vector<int32_t> tokens;
  double log_probability = 0;
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

// The search of one sentence.
class Sentence {
 public:
  Sentence(int64_t maximum_length, const SearchConfig& config, int32_t end)
      : config_(config), end_(end), maximum_length_(maximum_length), live_{Live{}} {}

  int64_t rows() const { return static_cast<int64_t>(live_.size()); }
  int32_t last_token(int64_t i, int32_t begin) const {
    const std::vector<int32_t>& tokens = live_[static_cast<size_t>(i)].tokens;
    return tokens.empty() ? begin : tokens.back();
  }

  // Goes one token on. `first_row` is this sentence's first row of log_probabilities (R, V); the
  // rows that its new hypotheses come from are appended to `origins`.
  void advance(const float* log_probabilities, int64_t vocabulary, int64_t first_row,
               const std::vector<bool>& forbidden, std::vector<int32_t>& origins) {
    const std::vector<Candidate> candidates =
        expand(log_probabilities, vocabulary, first_row, forbidden);
    const size_t beam = static_cast<size_t>(config_.beam);
    const bool is_full = static_cast<int64_t>(live_.front().tokens.size()) == maximum_length_;
    std::vector<Live> next;
    std::vector<int32_t> rows;
    for (size_t i = 0; i < candidates.size() && next.size() < beam; ++i) {
      const Candidate& candidate = candidates[i];
      const Live& parent = live_[static_cast<size_t>(candidate.row - first_row)];
      if (candidate.token == end_) {
        if (i < beam) finish(parent.tokens, candidate.log_probability, true);
        continue;
      }
      if (is_full) continue;
      next.push_back({parent.tokens, candidate.log_probability});
      next.back().tokens.push_back(candidate.token);
      rows.push_back(static_cast<int32_t>(candidate.row));
    }
    if (is_full) cut(first_row, candidates);
    live_ = std::move(next);
    if (is_full || is_decided()) {
      live_.clear();
      return;
    }
    origins.insert(origins.end(), rows.begin(), rows.end());
  }

  std::vector<Hypothesis> results() && {
    check(!finished_.empty(), "search: the model gives every way to go on the probability 0");
    sort_finished();
    finished_.resize(std::min(finished_.size(), static_cast<size_t>(config_.nbest)));
    return std::move(finished_);
  }

 private:
  std::vector<Candidate> expand(const float* log_probabilities, int64_t vocabulary,
                                int64_t first_row, const std::vector<bool>& forbidden) const {
    // Twice the beam: so many may end and still leave a full beam to follow.
    Best best(static_cast<size_t>(2 * config_.beam));
    for (int64_t row = first_row; row < first_row + rows(); ++row) {
      const double before = live_[static_cast<size_t>(row - first_row)].log_probability;
      const float* const next = log_probabilities + row * vocabulary;
      check(!std::isnan(next[0]),
            "search: the log-probabilities of token {} are NaN; are the model's parameters finite?",
            live_.front().tokens.size() + 1);
      for (int64_t token = 0; token < vocabulary; ++token) {
        const double sum = before + static_cast<double>(next[token]);
        if (!(sum >= best.worst()) || forbidden[static_cast<size_t>(token)] ||
            sum == -std::numeric_limits<double>::infinity())
          continue;
        best.offer({sum, row, static_cast<int32_t>(token)});
      }
    }
    return std::move(best).sorted();
  }

  void finish(std::vector<int32_t> tokens, double log_probability, bool finished) {
    const int64_t length = static_cast<int64_t>(tokens.size()) + (finished ? 1 : 0);
    finished_.push_back(
        {std::move(tokens), log_probability,
         length_score(log_probability, length, config_.length_penalty, config_.alpha), finished});
  }

  // Fills the results with hypotheses at the length limit, but for those that have just ended.
  void cut(int64_t first_row, const std::vector<Candidate>& candidates) {
    std::vector<bool> has_ended(live_.size());
    for (size_t i = 0; i < std::min(candidates.size(), static_cast<size_t>(config_.beam)); ++i) {
      if (candidates[i].token == end_)
        has_ended[static_cast<size_t>(candidates[i].row - first_row)] = true;
    }
    for (size_t i = 0; i < live_.size(); ++i) {
      if (!has_ended[i] && static_cast<int64_t>(finished_.size()) < config_.nbest)
        finish(live_[i].tokens, live_[i].log_probability, false);
    }
  }

  // Whether nothing that is followed can still enter the results.
  bool is_decided() {
    if (live_.empty()) return true;
    if (config_.beam == 1 && !finished_.empty()) return true;
    sort_finished();
    const size_t wanted = static_cast<size_t>(config_.nbest);
    if (finished_.size() < wanted) return false;
    // A log-probability only falls, and its length can help it no further than the limit.
    const double bound = length_score(live_.front().log_probability, maximum_length_ + 1,
                                      config_.length_penalty, config_.alpha);
    return bound <= finished_[wanted - 1].score;
  }

  void sort_finished() {
    std::stable_sort(finished_.begin(), finished_.end(),
                     [](const Hypothesis& a, const Hypothesis& b) {
                       if (a.finished != b.finished) return a.finished;
                       return a.score > b.score;
                     });
  }

  const SearchConfig& config_;
  int32_t end_;
  int64_t maximum_length_;
  std::vector<Live> live_;  // most probable first
  std::vector<Hypothesis> finished_;
};

void check_config(const SearchConfig& config) {
  check(config.beam >= 1 && config.nbest >= 1 && config.nbest <= config.beam,
        "search: needs 1 <= nbest <= beam, got nbest {} and beam {}", config.nbest, config.beam);
  check(config.alpha >= 0 && std::isfinite(config.alpha),
        "search: alpha must be at least 0 and finite, got {}", config.alpha);
  check(config.length_factor >= 0 && config.length_extra >= 0,
        "search: lengths must not be negative, got factor {} and extra {}", config.length_factor,
        config.length_extra);
}

}  // namespace

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
    sentences.emplace_back(length, config, model.end);
  }
  std::vector<bool> forbidden;
  while (true) {
    std::vector<int32_t> tokens;
    for (const Sentence& sentence : sentences) {
      for (int64_t i = 0; i < sentence.rows(); ++i)
        tokens.push_back(sentence.last_token(i, model.begin));
    }
    if (tokens.empty()) break;
    const Tensor log_probabilities = model.step(tokens);  // (R, V)
    const std::vector<float> values = log_probabilities.values<float>();
    const int64_t vocabulary = log_probabilities.size(1);
    if (forbidden.empty()) {
      forbidden.resize(static_cast<size_t>(vocabulary));
      for (const int32_t token : model.never) {
        if (token < vocabulary) forbidden[static_cast<size_t>(token)] = true;
      }
    }
    std::vector<int32_t> origins, row_offsets{0};
    int64_t first_row = 0;
    for (Sentence& sentence : sentences) {
      const int64_t rows = sentence.rows();
      if (rows > 0) sentence.advance(values.data(), vocabulary, first_row, forbidden, origins);
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
    const int64_t positions = transformer.config.maximum_length - 1;
    maximum_lengths.push_back(
        static_cast<int64_t>(std::clamp(length, 0.0, static_cast<double>(positions))));
  }
  DecoderState state = transformer.begin(transformer.encode(source));
  SearchModel model;
  model.begin = kBeginId;
  model.end = kEndId;
  model.never = {kPaddingId, kBeginId};
  model.step = [&](std::span<const int32_t> tokens) {
    return log_softmax(transformer.step(tokens, state));
  };
  model.select = [&](const std::vector<int32_t>& rows, std::vector<int32_t> row_offsets) {
    Transformer::select(state, rows, std::move(row_offsets));
  };
  return beam_search(model, maximum_lengths, config);
}

}  // namespace gs
