#pragma once

#include "framework/ops/floating.h"

namespace gs {

// What the normalisations over the last dimension of x (..., C) share.
inline void check_norm(const char* operation, const Tensor& x, double epsilon) {
  check(x.rank() >= 1, "{}: needs at least one dimension, got a scalar", operation);
  check_floating(operation, x);
  check(epsilon >= 0, "{}: epsilon must be at least 0, got {}", operation, epsilon);
}

// `parameter`, if defined, must be (C) and go with x (floating.h).
inline void check_norm_parameter(const char* operation, const char* name, const Tensor& parameter,
                                 const Tensor& x) {
  if (!parameter.defined()) return;
  const Shape expected{x.size(-1)};
  check(parameter.shape() == expected && goes_with(parameter, x),
        "{}: {} must be {} {} on {}, got {} {} on {}", operation, name, expected, x.dtype(),
        x.device(), parameter.shape(), parameter.dtype(), parameter.device());
}

// Both parameters; the result is their type, and that of their gradients.
inline DType check_norm_parameters(const char* operation, const Tensor& weight, const Tensor& bias,
                                   const Tensor& x) {
  check_norm_parameter(operation, "weight", weight, x);
  check_norm_parameter(operation, "bias", bias, x);
  if (!weight.defined()) return bias.dtype();
  check(!bias.defined() || bias.dtype() == weight.dtype(),
        "{}: weight and bias must have one type, got {} and {}; cast one", operation,
        weight.dtype(), bias.dtype());
  return weight.dtype();
}

// One pair of figures a row of x: (N, 2).
inline Array norm_statistics(const Array& x) {
  const Rows rows = Rows::of_last_dimension(x.shape());
  const DType dtype = x.dtype() == kFloat64 ? kFloat64 : kFloat32;
  return Array::empty({rows.count(), 2}, dtype, x.device());
}

}  // namespace gs
