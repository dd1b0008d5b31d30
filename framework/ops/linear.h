#pragma once

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs {

// y = x weight^T + bias: x (..., in), weight (out, in), bias (out) or undefined -> (..., out).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

// dropout(relu(linear(x, weight, bias))), both done to the product while it is at hand, with the
// same random numbers; the probability of dropout is in [0, 1]. What is kept for the gradient is
// the result alone.
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor(),
                   double dropout = 0, bool training = false,
                   Generator& generator = default_generator());

}  // namespace gs
