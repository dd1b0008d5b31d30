#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Softmax over one dimension of x, of any rank from 1 on; negative ones count from the end.
// A row of -infinity gives a row of zeros and zero gradients; one with NaN or +infinity, of NaN.
Tensor softmax(const Tensor& x, int64_t dimension = -1);

// The logarithm of softmax, exact at any scale of x. A row of -infinity stays -infinity and has
// zero gradients.
Tensor log_softmax(const Tensor& x, int64_t dimension = -1);

}  // namespace gs
