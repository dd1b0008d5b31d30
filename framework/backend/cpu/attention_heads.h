#pragma once

#include <algorithm>
#include <vector>

#include "framework/backend/attention.h"
#include "framework/backend/cpu/data_or_null.h"
#include "framework/core/parallel.h"

namespace gs::backend {

// Head `head` of `heads` of sequence `index`.
struct AttentionHead {
  const AttentionSequence& sequence;
  int64_t index, head, heads;

  // Where its weights start, (queries, weights_width).
  int64_t weights_start() const {
    return sequence.weights_start + head * sequence.queries * sequence.weights_width;
  }
  // How many keys, from the first on, query i may see at most.
  int64_t visible(const AttentionPlan& plan, int64_t i) const {
    if (!plan.causal) return sequence.keys;
    const int64_t causal = sequence.weights_width - sequence.queries + i + 1;
    return std::clamp<int64_t>(causal, 0, sequence.keys);
  }
  // The first query that may see key j.
  int64_t first_query(const AttentionPlan& plan, int64_t j) const {
    if (!plan.causal) return 0;
    return std::clamp<int64_t>(j - sequence.weights_width + sequence.queries, 0, sequence.queries);
  }
};

// Splits the heads of all sequences among the threads, by the number of weights, so that sequences
// of any length may follow one another: body(first, last) is for for_each_head.
template <typename Body>
void split_heads(const AttentionPlan& plan, const Body& body) {
  constexpr int64_t kGrain = 1 << 17;  // multiplications
  const int64_t heads = static_cast<int64_t>(plan.sequences.size()) * plan.heads;
  // Each head counts one more than its weights, so that every one has a place of its own.
  parallel_for(0, plan.weights + heads,
               std::max<int64_t>(1, kGrain / (plan.width + plan.value_width + 1)), body);
}

// Calls body(head) for the heads whose place lies in [first, last).
template <typename Body>
void for_each_head(const AttentionPlan& plan, int64_t first, int64_t last, const Body& body) {
  const auto place_of = [&](const AttentionHead& head) {
    return head.weights_start() + head.index * plan.heads + head.head;
  };
  const auto head_at = [&](int64_t b, int64_t h) {
    return AttentionHead{plan.sequences[static_cast<size_t>(b)], b, h, plan.heads};
  };
  // The heads of the last sequence that begins before `first` may begin after it.
  int64_t begin = 0, end = static_cast<int64_t>(plan.sequences.size());
  for (int64_t size = end; size > 1; size -= size / 2)
    if (place_of(head_at(begin + size / 2, 0)) <= first) begin += size / 2;
  for (int64_t b = begin; b < end; ++b) {
    for (int64_t h = 0; h < plan.heads; ++h) {
      const AttentionHead head = head_at(b, h);
      const int64_t place = place_of(head);
      if (place >= last) return;
      if (place >= first) body(head);
    }
  }
}

// At least `size` elements, from the start of a cache line on, that the thread keeps for the next
// call; `Purpose` tells them apart.
template <typename T, int Purpose>
T* attention_scratch(int64_t size) {
  struct alignas(64) Line {
    T elements[64 / sizeof(T)];
  };
  thread_local std::vector<Line> memory;
  const size_t lines = (static_cast<size_t>(size) * sizeof(T) + sizeof(Line) - 1) / sizeof(Line);
  if (memory.size() < lines) memory.resize(lines);
  return reinterpret_cast<T*>(memory.data());
}

}  // namespace gs::backend
