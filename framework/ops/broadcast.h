#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// x repeated to fill `shape`, by NumPy's rule: aligned at the last dimension, each size of x is
// that of `shape` or 1. A copy.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

}  // namespace gs
