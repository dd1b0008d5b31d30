#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// a where the bool condition is true, else b; all broadcast by NumPy's rule, a and b have the same
// type, a number takes the tensor's. What is not chosen gets a gradient of exactly 0, whatever
// stands there.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);

// x with `value` where the bool mask, which broadcasts to x, is true. There the gradient is exactly
// 0, also for infinities.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

}  // namespace gs
