#pragma once

#include <array>
#include <vector>

#include "framework/backend/array.h"
#include "framework/backend/dropout_mask.h"

namespace gs::backend {

// One sequence: the rows of the query that ask and the rows of key and value that they see. Its
// weights are a block (H, queries, weights_width) from weights_start on; the columns beyond `keys`
// are padding and hold 0.
struct AttentionSequence {
  int64_t query_start, queries, key_start, keys, weights_start, weights_width;
};

// What attention computes. Head h of a row is its columns h * width to (h + 1) * width - 1.
struct AttentionPlan {
  std::vector<AttentionSequence> sequences;  // in ascending order, covering all rows
  int64_t heads = 1, width = 0, value_width = 0;
  int64_t weights = 0;  // elements of all blocks
  bool causal = false;  // query i sees keys up to weights_width - queries + i
  double scale = 1;
  DropoutMask dropout;  // of element i of the weights; threshold 0: none
  // How far apart neighbours along (B, H, T, S) are in the mask and in the additive scores.
  std::array<int64_t, 4> mask_strides{}, scores_strides{};
  // The sequences in the memory of a device that reads them there; see place_sequences.
  Array table;

  bool drops() const { return dropout.threshold > 0; }
};

// Puts the sequences where the device's kernels read them; once a plan, before all else. Where the
// table is defined it is what counts, and the sequences bound those in it.
void place_sequences(Cpu, AttentionPlan& plan);
void place_sequences(Cuda, AttentionPlan& plan);

// output (N, heads * value_width) = the values (M, heads * value_width), weighted by the softmax
// over the keys (M, heads * width) of query (N, heads * width) * key * scale + scores where the
// mask is true. Rows without a key to see are 0. A key of weight 0 counts nothing, even if its
// value is not a number. mask and scores may be undefined.
struct AttentionInputs {
  Array query, key, value, mask, scores;
};
// The weights, those before dropout, are undefined if nobody asks for them; the statistics, too, of
// each row and head: N * heads * 2 numbers, the largest score (0 if all are -infinity) and the
// inverse of the sum of the powers above it (0 if there are none), in float64 or else float32.
struct AttentionResults {
  Array output, weights, statistics;
};
void attention(Cpu, AttentionResults& results, const AttentionInputs& inputs,
               const AttentionPlan& plan);
void attention(Cuda, AttentionResults& results, const AttentionInputs& inputs,
               const AttentionPlan& plan);

// What backward reads besides query, key and value: the weights; or the output and the statistics,
// from which the weights are computed again, with mask and scores.
constexpr bool attention_keeps_weights(Cpu) { return true; }
constexpr bool attention_keeps_weights(Cuda) { return false; }

// Gradients of what is defined; `dscores` has the form of the weights (see sum_scores). Either
// `dy`, the gradient of the output, or `dweights`, that of the weights, is defined; the latter
// gives no dvalue, and needs the weights on any device.
struct AttentionGradients {
  Array dquery, dkey, dvalue, dscores;
};
void attention_backward(Cpu, AttentionGradients& gradients, const Array& dy, const Array& dweights,
                        const AttentionInputs& inputs, const AttentionResults& results,
                        const AttentionPlan& plan);
void attention_backward(Cuda, AttentionGradients& gradients, const Array& dy, const Array& dweights,
                        const AttentionInputs& inputs, const AttentionResults& results,
                        const AttentionPlan& plan);

// y, in the form of the additive scores, = x, in the form of the weights, summed over what was
// broadcast.
void sum_scores(Cpu, Array& y, const Array& x, const AttentionPlan& plan);
void sum_scores(Cuda, Array& y, const Array& x, const AttentionPlan& plan);

// Whether there are ones in x and, besides, only zeros.
bool zeros_and_ones(Cpu, const Array& x);
bool zeros_and_ones(Cuda, const Array& x);

}  // namespace gs::backend
