#pragma once

#include <cuda_bf16.h>

#include "framework/backend/array.h"
#include "framework/core/dtype.h"

namespace gs::backend {

// How elements are stored and what is computed with: bfloat16 is computed in float32.
template <typename T>
struct Element {
  using Compute = T;
};
template <>
struct Element<__nv_bfloat16> {
  using Compute = float;
};
template <typename T>
using Compute = typename Element<T>::Compute;

template <typename T>
__device__ inline Compute<T> load(const T* place) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __bfloat162float(*place);
  } else {
    return *place;
  }
}
template <typename T>
__device__ inline void store(T* place, Compute<T> value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    *place = __float2bfloat16(value);
  } else {
    *place = value;
  }
}

// The elements of an array in device memory, as the kernels' type.
template <typename T>
T* elements_of(Array& array) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return reinterpret_cast<T*>(array.data<BFloat16>());
  } else {
    return array.data<T>();
  }
}
template <typename T>
const T* elements_of(const Array& array) {
  return elements_of<T>(const_cast<Array&>(array));
}

// Calls `function` with a value of the kernels' element type: float, double or __nv_bfloat16.
template <typename Function>
void dispatch_element(const char* operation, DType dtype, Function&& function) {
  if (dtype == kBFloat16) return function(__nv_bfloat16{});
  dispatch_floating(operation, dtype, std::forward<Function>(function));
}

}  // namespace gs::backend
