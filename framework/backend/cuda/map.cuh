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

// Reads an array of the result's shape for map(); see BroadcastReader for others.
template <typename T>
struct DenseReader {
  using Type = T;
  const T* data;

  bool allows_packs(int64_t) const { return true; }
  template <int kSize>
  __device__ Pack<T, kSize> pack_at(int64_t first) const {
    return load_pack<T, kSize>(data + first);
  }
  __device__ T at(int64_t i) const { return data[i]; }
};

// `packs` packs first, then what is left of `count` elements.
template <typename Y, typename Function, typename... Readers>
__global__ void map_kernel(Y* y, int64_t packs, int64_t count, Function function, Readers... x) {
  constexpr int kSize = kPackSize<Y, typename Readers::Type...>;
  const auto map_pack = [&](int64_t first, const auto&... packed) {
    Pack<Y, kSize> result;
#pragma unroll
    for (int i = 0; i < kSize; ++i) store(result.values + i, function(load(packed.values + i)...));
    store_pack(y + first, result);
  };
  for (int64_t i = first_element(); i < packs; i += element_step())
    map_pack(i * kSize, x.template pack_at<kSize>(i * kSize)...);
  const auto map_one = [&](int64_t i, const auto&... values) {
    store(y + i, function(load(&values)...));
  };
  for (int64_t i = packs * kSize + first_element(); i < count; i += element_step())
    map_one(i, x.at(i)...);
}

template <typename T>
DenseReader<std::remove_const_t<T>> reader_of(T* data) {
  return {data};
}
template <typename Reader>
Reader reader_of(const Reader& reader) {
  return reader;
}

template <typename Y, typename Function, typename... Readers>
void launch_map(const char* operation, Cuda device, int64_t count, Y* y, Function function,
                const Readers&... readers) {
  constexpr int kSize = kPackSize<Y, typename Readers::Type...>;
  const int64_t packs = (readers.allows_packs(kSize) && ...) ? count / kSize : 0;
  launch(operation, device, grid_of(count, packs > 0 ? kSize : 1),
         map_kernel<Y, Function, Readers...>, y, packs, count, function, readers...);
}

// y[i] = function(x[i]...) for `count` elements, computed in Compute of the types of x, which are
// pointers to as many elements, or readers. y may be an x that is not broadcast. Bound by memory:
// 16 bytes of the widest type a thread.
template <typename Y, typename Function, typename... X>
void map(const char* operation, Cuda device, int64_t count, Y* y, Function function, X... x) {
  if (count > 0) launch_map(operation, device, count, y, function, reader_of(x)...);
}

}  // namespace gs::backend
