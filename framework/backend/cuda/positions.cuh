#pragma once

#include <optional>

#include "framework/backend/cuda/map.cuh"
#include "framework/core/shape.h"

namespace gs::backend {

// Where each row is among indices, ascending: row v at order[start[v]] to order[start[v + 1] - 1].
struct Positions {
  Array start, order;  // int32 (rows + 1), (indices)
};
// Of int32 indices in 0..rows - 1; those that equal `skipped` are left out.
Positions positions_by_row(const char* operation, Cuda device, const Array& indices, int64_t rows,
                           std::optional<int64_t> skipped = std::nullopt);

// y[o, v, i] = the sum of x[o, k, i] over the positions k of v, added in their order as Sum; with
// `adds` it is added to what y holds. A thread has one pack of y; `rows` and `inner` count packs.
template <int kSize, typename Sum, typename T>
__global__ void sum_positions_kernel(T* y, const T* x, const int32_t* start, const int32_t* order,
                                     Rows rows, int64_t count, bool adds) {
  using C = Compute<T>;
  constexpr int kAtOnce = 4;  // packs on their way, since few threads share a frequent row
  const int64_t packs = rows.outer * rows.length * rows.inner;
  for (int64_t i = first_element(); i < packs; i += element_step()) {
    const int64_t line = i / rows.inner, column = i - line * rows.inner;
    const int64_t outer = line / rows.length, row = line - outer * rows.length;
    const T* const from = x + (outer * count * rows.inner + column) * kSize;
    const int64_t step = rows.inner * kSize;
    const int32_t end = start[row + 1];
    int32_t k = start[row];
    if (adds && k == end) continue;
    Sum sum[kSize] = {};
    const auto add = [&](const Pack<T, kSize>& pack) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) sum[j] += static_cast<Sum>(load(pack.values + j));
    };
    for (; k + kAtOnce <= end; k += kAtOnce) {
      Pack<T, kSize> ahead[kAtOnce];
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) ahead[n] = load_pack<T, kSize>(from + order[k + n] * step);
#pragma unroll
      for (int n = 0; n < kAtOnce; ++n) add(ahead[n]);
    }
    for (; k < end; ++k) add(load_pack<T, kSize>(from + order[k] * step));
    Pack<T, kSize> result{};
    if (adds) result = load_pack<T, kSize>(y + i * kSize);
#pragma unroll
    for (int j = 0; j < kSize; ++j) {
      const C value = static_cast<C>(sum[j]);
      store(result.values + j, adds ? load(result.values + j) + value : value);
    }
    store_pack(y + i * kSize, result);
  }
}

// The same for whole arrays: y (outer, length, inner), x (outer, indices, inner).
template <typename Sum, typename T>
void sum_positions(const char* operation, Cuda device, T* y, const T* x, const Positions& positions,
                   Rows rows, bool adds) {
  const auto run = [&](auto size) {
    const Rows packs{rows.outer, rows.length, rows.inner / size};
    launch(operation, device, grid_of(packs.outer * packs.length * packs.inner),
           sum_positions_kernel<size, Sum, T>, y, x, positions.start.data<int32_t>(),
           positions.order.data<int32_t>(), packs, positions.order.elements(), adds);
  };
  constexpr int kSize = kPackSize<T>;
  if (rows.inner % kSize == 0) return run(std::integral_constant<int, kSize>());
  run(std::integral_constant<int, 1>());
}

}  // namespace gs::backend
