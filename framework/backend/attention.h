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

  bool drops() const { return dropout.threshold > 0; }
};

// output (N, heads * value_width) = the values (M, heads * value_width), weighted by the softmax
// over the keys (M, heads * width) of query (N, heads * width) * key * scale + scores where the
// mask is true. Rows without a key to see are 0. A key of weight 0 counts nothing, even if its
// value is not a number. mask and scores may be undefined. `weights` is undefined or gets those
// before dropout.
struct AttentionInputs {
  Array query, key, value, mask, scores;
};
void attention(Cpu, Array& output, Array& weights, const AttentionInputs& inputs,
               const AttentionPlan& plan);
void attention(Cuda, Array& output, Array& weights, const AttentionInputs& inputs,
               const AttentionPlan& plan);

// Gradients of what is defined; `dscores` has the form of the weights (see sum_scores). Either
// `dy`, the gradient of the output, or `dweights`, that of the weights, is defined; the latter
// gives no dvalue.
struct AttentionGradients {
  Array dquery, dkey, dvalue, dscores;
};
void attention_backward(Cpu, AttentionGradients& gradients, const Array& dy, const Array& dweights,
                        const AttentionInputs& inputs, const Array& weights,
                        const AttentionPlan& plan);
void attention_backward(Cuda, AttentionGradients& gradients, const Array& dy, const Array& dweights,
                        const AttentionInputs& inputs, const Array& weights,
                        const AttentionPlan& plan);

// y, in the form of the additive scores, = x, in the form of the weights, summed over what was
// broadcast.
void sum_scores(Cpu, Array& y, const Array& x, const AttentionPlan& plan);
void sum_scores(Cuda, Array& y, const Array& x, const AttentionPlan& plan);

// Whether there are ones in x and, besides, only zeros.
bool zeros_and_ones(Cpu, const Array& x);
bool zeros_and_ones(Cuda, const Array& x);

}  // namespace gs::backend
