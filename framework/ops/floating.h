#pragma once

#include "framework/tensor/tensor.h"

// Which types operations compute with. Activations decide: parameters may stay float32 where those
// are bfloat16, so that small steps of an optimizer are not lost.
namespace gs {

// float32 and float64, and on CUDA devices bfloat16.
inline bool is_computable(const Tensor& x) {
  return is_floating(x.dtype()) || (x.dtype() == kBFloat16 && x.device() != Device::cpu());
}

inline void check_floating(const char* operation, const Tensor& x) {
  check(is_computable(x), "{}: needs float32 or float64, got {}; cast it first", operation,
        x.dtype());
}

// Whether a parameter goes with activations: in their type, or in float32 where they are bfloat16.
inline bool goes_with(const Tensor& parameter, const Tensor& x) {
  const bool mixed = x.dtype() == kBFloat16 && parameter.dtype() == kFloat32;
  return is_computable(x) && (mixed || parameter.dtype() == x.dtype()) &&
         parameter.device() == x.device();
}

// The values of a parameter, undefined or not, in the type of the activations.
inline Array in_type_of(const Tensor& x, const Tensor& parameter) {
  if (!parameter.defined() || parameter.dtype() == x.dtype()) return parameter.value();
  return parameter.value().to(x.dtype());
}

}  // namespace gs
