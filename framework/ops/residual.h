#pragma once

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs {

// x + dropout(branch), both of one shape, in one pass: how a residual branch ends. Random numbers
// are those of dropout, of probability `dropout` in [0, 1].
Tensor residual(const Tensor& x, const Tensor& branch, double dropout = 0, bool training = false,
                Generator& generator = default_generator());

// layer_norm(residual(x, branch), weight, bias, epsilon), (..., C), in one pass each way: how a
// branch ends where the norm comes after it. weight and bias (C) may be undefined.
Tensor residual_layer_norm(const Tensor& x, const Tensor& branch, const Tensor& weight,
                           const Tensor& bias, double epsilon = 1e-5, double dropout = 0,
                           bool training = false, Generator& generator = default_generator());

}  // namespace gs
