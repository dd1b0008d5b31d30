#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// The most probable classes of each row, most probable first, equal ones by their number.
struct TopLogSoftmax {
  Tensor log_probabilities, classes;  // (R, K); classes are int32
};

// log_softmax of logits (R, V) at the K = min(count, V) largest logits of each row, without the
// others. A row that holds NaN or +infinity gives NaN. It has no gradient: logits that need one are
// refused.
TopLogSoftmax top_log_softmax(const Tensor& logits, int64_t count);

// The same for the logits x weight + bias of x (R, C), which never stand whole. The weight is that
// of a linear layer transposed, (C, V): so a few rows can be multiplied without arranging it anew.
// The bias (V) may be undefined.
TopLogSoftmax linear_top_log_softmax(const Tensor& x, const Tensor& transposed_weight,
                                     const Tensor& bias, int64_t count);

}  // namespace gs
