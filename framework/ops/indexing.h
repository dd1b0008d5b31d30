#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Indices are int32 and count from 0; one outside of the dimension is refused with its position
// before anything is computed. The gradients of an element that is taken several times are added
// up, always in the same order.

// The slices of one dimension that `indices` (n) name: (..., size, ...) -> (..., n, ...).
Tensor index_select(const Tensor& x, int64_t dimension, const Tensor& indices);

// One element for each index: y[i][k][j] = x[i][indices[i][k][j]][j] for the middle dimension.
// x and indices have equal sizes in the other dimensions; the result has the indices' shape.
Tensor gather(const Tensor& x, int64_t dimension, const Tensor& indices);

}  // namespace gs
