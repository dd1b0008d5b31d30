#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// x / sqrt(mean(x^2) + epsilon) * weight over the last dimension of x (..., C). `weight` (C) may be
// left undefined. Zhang and Sennrich, "Root mean square layer normalization", 2019.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double epsilon = 1e-5);

}  // namespace gs
