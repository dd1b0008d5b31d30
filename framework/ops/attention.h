#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs {

// How queries attend to keys. Everything that forbids a key counts, whatever else is given.
struct AttentionOptions {
  int64_t heads = 1;
  // Query i of T sees keys up to S - T + i of S: the last query sees all of them.
  bool causal = false;
  // bool, true = may attend; broadcast to (B, H, T, S). Empty: all may.
  Tensor mask = {};
  // Added to query * key * scale, of the query's type, broadcast to (B, H, T, S); -infinity blocks.
  // Gets a gradient if it needs one.
  Tensor scores = {};
  // How many keys, from the first on, each sequence of a dense batch has: (B), or empty for all.
  std::vector<int64_t> key_lengths = {};
  // Of query * key; 0 means 1 / sqrt(D).
  double scale = 0;
  // Of the weights, in [0, 1), only in training. One stream of `generator` (null: the default one)
  // tells which are dropped.
  double dropout = 0;
  bool training = false;
  Generator* generator = nullptr;
  bool return_weights = false;
};

struct Attention {
  Tensor output;
  // Only on request: the softmax before dropout. Each row sums to 1, or to 0 if it may attend to
  // nothing. They have gradients, too.
  Tensor weights;
};

// softmax(query key^T * scale) value, head by head: head h is the columns h * D to (h + 1) * D - 1.
// query (B, T, H * D), key (B, S, H * D), value (B, S, H * Dv) -> output (B, T, H * Dv), weights
// (B, H, T, S). A query that may attend to nothing gives zeros, and zero gradients; a key of weight
// 0 counts nothing, even if it is not a number.
// Refused: lengths of key and value that differ, heads that do not divide the widths, a mask that
// is not bool, scores that look like a mask (only zeros and ones; unless they need a gradient).
Attention scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionOptions& options = {});

// The same for sequences packed one after another, without padding: rows query_offsets[b] to
// query_offsets[b + 1] - 1 of query (N, H * D) see rows key_offsets[b] to key_offsets[b + 1] - 1 of
// key (M, H * D) and value (M, H * Dv). -> output (N, H * Dv). Mask and scores broadcast to
// (B, H, longest T, longest S). The weights are flat: the blocks (H, T, S) of the sequences one
// after another. Offsets (B + 1) ascend from 0 to the number of rows. No key_lengths here.
Attention packed_attention(const Tensor& query, std::span<const int32_t> query_offsets,
                           const Tensor& key, const Tensor& value,
                           std::span<const int32_t> key_offsets,
                           const AttentionOptions& options = {});

// Sequences whose table, as packed_attention makes it of offsets, stands on the device: bytes of
// backend::AttentionSequence, as int32. Those at the end may be empty; none has more queries or
// keys than said.
struct PlacedSequences {
  Array table;
  int64_t count = 0, longest_query = 0, longest_key = 0;
};

// The same without the host's knowing the sequences, so that a recorded step goes with any of that
// form. The table is trusted. Neither mask, scores nor weights here.
Attention packed_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                           const PlacedSequences& sequences, const AttentionOptions& options = {});

}  // namespace gs
