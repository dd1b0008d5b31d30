#pragma once

#include "framework/ops/floating.h"

namespace gs {

// What operations with the product x weight^T + bias share: x (..., in), weight (out, in), bias
// (out) or undefined, all on one device; weight and bias of one floating type that goes with x.
inline void check_linear(const char* operation, const Tensor& x, const Tensor& weight,
                         const Tensor& bias) {
  check(weight.rank() == 2 && is_computable(weight),
        "{}: the weight must be (out, in) in float32 or float64, got {} {}", operation,
        weight.shape(), weight.dtype());
  check(x.rank() >= 1 && x.size(-1) == weight.size(1),
        "{}: the last size of the input must be {}, got {}; weights are (out, in), here {}",
        operation, weight.size(1), x.shape(), weight.shape());
  check(goes_with(weight, x), "{}: input is {} on {}, weight {} on {}; convert one", operation,
        x.dtype(), x.device(), weight.dtype(), weight.device());
  if (!bias.defined()) return;
  const Shape out{weight.size(0)};
  check(bias.shape() == out && bias.dtype() == weight.dtype() && bias.device() == x.device(),
        "{}: the bias must be {} {} on {}, got {} {} on {}", operation, out, weight.dtype(),
        x.device(), bias.shape(), bias.dtype(), bias.device());
}

}  // namespace gs
