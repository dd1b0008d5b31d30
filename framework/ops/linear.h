#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// y = x weight^T + bias: x (..., in), weight (out, in), bias (out) or undefined -> (..., out).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = Tensor());

}  // namespace gs
