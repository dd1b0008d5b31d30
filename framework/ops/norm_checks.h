#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// What the normalisations over the last dimension of x (..., C) share.
inline void check_norm(const char* operation, const Tensor& x, double epsilon) {
  check(x.rank() >= 1, "{}: needs at least one dimension, got a scalar", operation);
  check(is_floating(x.dtype()), "{}: needs float32 or float64, got {}; cast it first", operation,
        x.dtype());
  check(epsilon >= 0, "{}: epsilon must be at least 0, got {}", operation, epsilon);
}

// `parameter`, if defined, must be (C) of x's type and device.
inline void check_norm_parameter(const char* operation, const char* name, const Tensor& parameter,
                                 const Tensor& x) {
  if (!parameter.defined()) return;
  const Shape expected{x.size(-1)};
  check(parameter.shape() == expected && parameter.dtype() == x.dtype() &&
            parameter.device() == x.device(),
        "{}: {} must be {} {} on {}, got {} {} on {}", operation, name, expected, x.dtype(),
        x.device(), parameter.shape(), parameter.dtype(), parameter.device());
}

// One pair of figures a row of x: (N, 2).
inline Array norm_statistics(const Array& x) {
  const Rows rows = Rows::of_last_dimension(x.shape());
  return Array::empty({rows.count(), 2}, x.dtype(), x.device());
}

}  // namespace gs
