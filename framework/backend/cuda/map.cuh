#pragma once

#include <algorithm>

#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/launch.h"

namespace gs::backend {

// Neighbouring elements that are read and written at once.
template <typename T, int kSize>
struct alignas(sizeof(T) * kSize) Pack {
  T values[kSize];
};
template <typename T, int kSize>
__device__ inline Pack<T, kSize> load_pack(const T* place) {
  return *reinterpret_cast<const Pack<T, kSize>*>(place);
}
template <typename T, int kSize>
__device__ inline void store_pack(T* place, const Pack<T, kSize>& pack) {
  *reinterpret_cast<Pack<T, kSize>*>(place) = pack;
}

// How many elements make packs of at most 16 bytes, where several types have packs of one size.
template <typename... T>
inline constexpr int kPackSize = static_cast<int>(16 / std::max({sizeof(T)...}));

template <typename Y, typename Function, typename... X>
__global__ void map_kernel(Y* y, int64_t count, Function function, const X*... x) {
  constexpr int kSize = kPackSize<Y, X...>;
  const int64_t packs = count / kSize;
  const auto map_pack = [&](int64_t first, const Pack<X, kSize>&... values) {
    Pack<Y, kSize> result;
#pragma unroll
    for (int i = 0; i < kSize; ++i) store(result.values + i, function(load(values.values + i)...));
    store_pack(y + first, result);
  };
  for (int64_t i = first_element(); i < packs; i += element_step())
    map_pack(i * kSize, load_pack<X, kSize>(x + i * kSize)...);
  for (int64_t i = packs * kSize + first_element(); i < count; i += element_step())
    store(y + i, function(load(x + i)...));
}

// y[i] = function(x[i]...) for `count` elements of whole arrays, computed in Compute<X>. y may be
// one of x. Bound by memory: 16 bytes of the widest type a thread.
template <typename Y, typename Function, typename... X>
void map(const char* operation, Cuda device, int64_t count, Y* y, Function function,
         const X*... x) {
  if (count == 0) return;
  launch(operation, device, grid_of(count, kPackSize<Y, X...>), map_kernel<Y, Function, X...>, y,
         count, function, x...);
}

}  // namespace gs::backend
