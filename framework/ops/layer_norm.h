#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// (x - mean) / sqrt(variance + epsilon) * weight + bias over the last dimension of x (..., C), with
// the variance of the population. `weight` and `bias` (C) may be left undefined. The gradients of
// weight and bias do not depend on the number of threads.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double epsilon = 1e-5);

}  // namespace gs
