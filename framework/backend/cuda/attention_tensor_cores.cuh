// The products of attention_tiles.cuh in bfloat16, on tensor cores: 16 rows a warp.
#pragma once

#include <cstring>

#include "framework/backend/cuda/attention_tiles.cuh"
#include "framework/backend/cuda/mma.cuh"

namespace gs::backend {

// Columns 8 n to 8 n + 7 of a warp's rows += a b.
template <int kColumns>
__device__ void add_product(float (&sums)[2][kColumns], int n, const uint32_t (&a)[4],
                            const uint32_t (&b)[2]) {
  float part[4] = {sums[0][2 * n], sums[0][2 * n + 1], sums[1][2 * n], sums[1][2 * n + 1]};
  mma_bf16(part, a, b, part);
  for (int i = 0; i < 4; ++i) sums[i / 2][2 * n + i % 2] = part[i];
}

__device__ inline void multiply(TileElements<__nv_bfloat16>& sums, const Tile<__nv_bfloat16>& a,
                                const Tile<__nv_bfloat16>& b) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int first = static_cast<int>(threadIdx.x) / kWarp * 16;
  const auto* const a_row = a.elements + (first + lane % 16) * a.kStride + lane / 16 * 8;
  const auto* const b_row = b.elements + (lane / 16 * 8 + lane % 8) * b.kStride + lane / 8 % 2 * 8;
#pragma unroll 2
  for (int c = 0; c < a.columns; c += 16) {
    uint32_t rows[4];
    load_matrices(rows, a_row + c);
#pragma unroll
    for (int n = 0; n < kTile / 8; n += 2) {
      uint32_t columns[4];  // two times eight
      load_matrices(columns, b_row + n * 8 * b.kStride + c);
      add_product(sums, n, rows, {columns[0], columns[1]});
      add_product(sums, n + 1, rows, {columns[2], columns[3]});
    }
  }
}

// Rounded, and kept where they are: what mma_bf16 gives as a result it takes as A.
template <>
struct Coefficients<__nv_bfloat16> {
  static constexpr int kElements = 0;

  uint32_t parts[kTile / 16][4];

  __device__ explicit Coefficients(const void* /* shared */) {}

  __device__ void hold(const TileElements<__nv_bfloat16>& x, float factor) {
#pragma unroll
    for (int i = 0; i < kTile / 4; ++i) {
      const float* const pair = &x[i % 2][i / 2 * 2];
      const __nv_bfloat162 both = __floats2bfloat162_rn(pair[0] * factor, pair[1] * factor);
      std::memcpy(&parts[i / 4][i % 4], &both, sizeof both);
    }
  }
};

// The rule of the other types, that a coefficient of 0 hides even what is not a number, holds only
// where `exact`: tensor cores multiply by 0, too.
__device__ inline void combine(TileSums<__nv_bfloat16>& sums,
                               const Coefficients<__nv_bfloat16>& coefficients,
                               const Tile<__nv_bfloat16>& x, bool exact) {
  using Sums = TileSums<__nv_bfloat16>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (!exact) {
    static_assert(kTile == kWarp);
#pragma unroll
    for (int n = 0; n < x.kWidth / 8; ++n) {
      if (n * 8 >= x.columns) break;
      uint32_t columns[4];
      load_matrices_transposed(columns, x.elements + lane * x.kStride + n * 8);
      add_product(sums.sums, n, coefficients.parts[0], {columns[0], columns[1]});
      add_product(sums.sums, n, coefficients.parts[1], {columns[2], columns[3]});
    }
    return;
  }
#pragma unroll
  for (int group = 0; group < kTile / 8; ++group) {
#pragma unroll 1
    for (int k = 0; k < 8; ++k) {
      const auto* const row = x.elements + (group * 8 + k) * x.kStride;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const uint32_t pair = __shfl_sync(
            kAllLanes, coefficients.parts[group / 2][group % 2 * 2 + i], lane / 4 * 4 + k / 2);
        const float factor = __uint_as_float(k % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
        if (factor == 0) continue;
#pragma unroll
        for (int c = 0; c < Sums::kColumns; ++c)
          sums.sums[i][c] += factor * load(row + Sums::column(c));
      }
    }
  }
}

}  // namespace gs::backend
