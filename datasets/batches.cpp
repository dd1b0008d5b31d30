#include "datasets/batches.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "datasets/text_hash.h"
#include "framework/core/error.h"
#include "framework/core/profiler.h"
#include "framework/core/random.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

// Streams of their own, far from those that a Generator of the same seed hands out.
constexpr uint64_t kFirstStream = uint64_t{1} << 63;

RandomStream epoch_stream(uint64_t seed, int64_t epoch, uint64_t purpose) {
  return {seed, kFirstStream + 2 * static_cast<uint64_t>(epoch) + purpose};
}

// Fisher and Yates, with 64 random bits modulo the range (a bias below 2^-32 for any corpus that
// fits), the same on every machine.
template <typename T>
void shuffle(std::vector<T>& items, const RandomStream& stream) {
  for (size_t i = items.size(); i > 1; --i) {
    const auto words = stream.words(i);
    const uint64_t random = uint64_t{words[0]} << 32 | words[1];
    std::swap(items[i - 1], items[random % i]);
  }
}

template <typename T>
std::string_view bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// The pair's share of the token limit: its labels.
int64_t labels(const Sequences& target, int64_t pair) { return target.length(pair) + 1; }

}  // namespace

Batch make_batch(const Sequences& source, const Sequences& target, std::span<const int64_t> pairs) {
  Batch batch;
  std::vector<int32_t> marked;
  for (const int64_t pair : pairs) {
    const std::span<const int32_t> from = source[pair], to = target[pair];
    marked.assign(from.begin(), from.end());
    marked.push_back(kEndId);
    batch.source.append(marked);
    marked.assign(1, kBeginId);
    marked.insert(marked.end(), to.begin(), to.end());
    batch.target_inputs.append(marked);
    marked.erase(marked.begin());
    marked.push_back(kEndId);
    batch.target_labels.append(marked);
    batch.pairs.push_back(pair);
  }
  return batch;
}

Batches::Batches(Sequences source, Sequences target, BatchConfig config)
    : source_(std::move(source)), target_(std::move(target)), config_(config) {
  check(source_.count() == target_.count(),
        "batches: counts differ, got {} sources and {} targets; give one target for each source",
        source_.count(), target_.count());
  check(source_.count() > 0, "batches: no pairs, got an empty corpus; give at least one pair");
  check(config.maximum_tokens >= 0 && config.maximum_sentences >= 0 &&
            (config.maximum_tokens > 0 || config.maximum_sentences > 0),
        "batches: a limit of 1 or more is needed, got maximum_tokens {} and maximum_sentences {}",
        config.maximum_tokens, config.maximum_sentences);
  check(config.pool_sentences >= 1, "batches: pool_sentences must be 1 or more, got {}",
        config.pool_sentences);
}

uint64_t Batches::fingerprint() const {
  std::vector<uint64_t> hashes;
  for (const Sequences* side : {&source_, &target_}) {
    for (const std::vector<int32_t>* numbers : {&side->tokens, &side->offsets})
      hashes.push_back(hash_text(bytes_of(*numbers)));
  }
  return hash_text(bytes_of(hashes));
}

void Batches::plan(int64_t epoch) {
  check(epoch >= 0, "batches: the epoch must be 0 or more, got {}", epoch);
  if (planned_epoch_ == epoch) return;
  planned_epoch_ = -1;
  order_.resize(static_cast<size_t>(pairs()));
  std::iota(order_.begin(), order_.end(), 0);
  if (config_.shuffle) {
    shuffle(order_, epoch_stream(config_.seed, epoch, 0));
    const auto lengths = [&](int64_t pair) {
      return std::tuple(target_.length(pair), source_.length(pair));
    };
    for (auto pool = order_.begin(); pool != order_.end();) {
      const auto end = pool + std::min<int64_t>(config_.pool_sentences, order_.end() - pool);
      std::stable_sort(pool, end, [&](int64_t a, int64_t b) { return lengths(a) < lengths(b); });
      pool = end;
    }
  }
  ranges_.clear();
  int64_t tokens = 0;
  for (int64_t i = 0; i < pairs(); ++i) {
    const int64_t more = labels(target_, order_[static_cast<size_t>(i)]);
    const bool full =
        ranges_.empty() || (config_.maximum_tokens > 0 && tokens + more > config_.maximum_tokens) ||
        (config_.maximum_sentences > 0 && i - ranges_.back().first == config_.maximum_sentences);
    if (full) {
      ranges_.emplace_back(i, i);
      tokens = 0;
    }
    ranges_.back().second = i + 1;
    tokens += more;
  }
  if (config_.shuffle) shuffle(ranges_, epoch_stream(config_.seed, epoch, 1));
  planned_epoch_ = epoch;
}

int64_t Batches::count(int64_t epoch) {
  plan(epoch);
  return static_cast<int64_t>(ranges_.size());
}

Batch Batches::at(DataPosition position) {
  const OperationTimer timer("batch", Phase::kOther);
  const int64_t batches = count(position.epoch);
  check(position.batch >= 0 && position.batch < batches,
        "batches: batch {} of epoch {} is outside 0..{}; were data or limits changed?",
        position.batch, position.epoch, batches - 1);
  const auto [begin, end] = ranges_[static_cast<size_t>(position.batch)];
  return make_batch(
      source_, target_,
      std::span(order_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
}

DataPosition Batches::after(DataPosition position) {
  if (position.batch + 1 < count(position.epoch)) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

}  // namespace gs
