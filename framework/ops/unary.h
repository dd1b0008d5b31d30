#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Functions of each element, for float32 and float64 of any shape.

// max(x, 0), with gradient 0 at 0. NaN stays.
Tensor relu(const Tensor& x);

// x Phi(x) with the exact distribution function of the normal distribution.
Tensor gelu(const Tensor& x);

}  // namespace gs
