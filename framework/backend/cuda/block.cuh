#pragma once

#include "framework/backend/cuda/launch.h"

namespace gs::backend {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarp = 32;

struct Add {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// NaN wins.
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

// `operation` over the values of a warp's 32 lanes, which all get the result; always in the same
// order.
template <typename Operation, typename T>
__device__ T warp_reduce(T value, Operation operation) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    value = operation(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}
template <typename T>
__device__ T warp_sum(T value) {
  return warp_reduce(value, Add{});
}

// The same over a block, one-dimensional and of whole warps; all threads call it and get the
// result. `scratch` is shared memory for 32 values.
template <typename Operation, typename T>
__device__ T block_reduce(T value, T* scratch, Operation operation, T neutral) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  value = warp_reduce(value, operation);
  __syncthreads();  // the last use of the scratch is over
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / kWarp ? scratch[lane] : neutral;
  return warp_reduce(value, operation);
}
template <typename T>
__device__ T block_sum(T value, T* scratch) {
  return block_reduce(value, scratch, Add{}, T{0});
}

}  // namespace gs::backend
