#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// What operations with the product x weight^T + bias share: x (..., in), weight (out, in), bias
// (out) or undefined, all of one floating type on one device.
inline void check_linear(const char* operation, const Tensor& x, const Tensor& weight,
                         const Tensor& bias) {
  check(weight.rank() == 2 && is_floating(weight.dtype()),
        "{}: the weight must be (out, in) in float32 or float64, got {} {}", operation,
        weight.shape(), weight.dtype());
  check(x.rank() >= 1 && x.size(-1) == weight.size(1),
        "{}: the last size of the input must be {}, got {}; weights are (out, in), here {}",
        operation, weight.size(1), x.shape(), weight.shape());
  check(x.dtype() == weight.dtype() && x.device() == weight.device(),
        "{}: input is {} on {}, weight {} on {}; convert one", operation, x.dtype(), x.device(),
        weight.dtype(), weight.device());
  if (!bias.defined()) return;
  const Shape out{weight.size(0)};
  check(bias.shape() == out && bias.dtype() == x.dtype() && bias.device() == x.device(),
        "{}: the bias must be {} {} on {}, got {} {} on {}", operation, out, x.dtype(), x.device(),
        bias.shape(), bias.dtype(), bias.device());
}

}  // namespace gs
