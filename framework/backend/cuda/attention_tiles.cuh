// The small matrix products of attention: kTile times kTile weights at a time, from tiles of rows
// in shared memory.
#pragma once

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/launch.h"
#include "framework/backend/cuda/mma.cuh"

namespace gs::backend {

constexpr int kTile = 32, kTileThreads = 64;
constexpr int kTileBlocks = 4;  // of a multiprocessor at least; bounds the registers of a thread

// Columns that a tile has room for. Wider matrices are taken in parts.
template <typename T>
constexpr int kTileWidth = sizeof(T) <= 4 ? 64 : 32;

// 16 bytes, loaded and stored at once.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T elements[kSize];
};

// The columns of one head in some rows of a matrix (rows, heads * width).
template <typename T>
struct HeadRows {
  T* data;
  int64_t rows, width, stride;
};
template <typename T>
__device__ HeadRows<T> head_rows(T* x, int64_t first, int64_t rows, int64_t head, int64_t heads,
                                 int64_t width) {
  return {x + (first * heads + head) * width, rows, width, heads * width};
}

// Which elements of a tile one thread computes: those of some rows, which kLanes threads share, and
// some columns; in wide tiles runs of kRun neighbours.
template <typename T>
struct TileThread {
  static constexpr int kLanes = 8, kRows = kTile / (kTileThreads / kLanes),
                       kColumns = kTile / kLanes;
  static constexpr int kRun = Pack<T>::kSize;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int row(int i) { return static_cast<int>(threadIdx.x) / kLanes + i * kLanes; }
  __device__ static int column(int j) { return lane() + j * kLanes; }
};
// As mma_bf16 has its results: each of the two warps has 16 rows.
template <>
struct TileThread<__nv_bfloat16> {
  static constexpr int kLanes = 4, kRows = 2, kColumns = kTile / kLanes;
  static constexpr int kRun = 2;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kLanes; }
  __device__ static int row(int i) {
    const int thread = static_cast<int>(threadIdx.x);
    return thread / kWarp * 16 + thread % kWarp / kLanes + i * 8;
  }
  __device__ static int column(int j) { return j / kRun * 8 + lane() * kRun + j % kRun; }
};

// kTile rows of a matrix in shared memory; what lies outside of the matrix is 0.
template <typename T>
struct Tile {
  static constexpr int kWidth = kTileWidth<T>;
  // Rows are four banks apart, so that threads which read neighbouring rows do not collide.
  static constexpr int kStride = kWidth + Pack<T>::kSize;
  static constexpr int kElements = kTile * kStride;

  T* elements;
  const T* start = nullptr;   // in the matrix
  int rows = 0, columns = 0;  // of the matrix, that the tile holds

  // Starts to fill the tile, unless it holds this part already. A barrier before is the caller's,
  // wait_for_tiles must follow.
  __device__ void hold(const HeadRows<const T>& x, int64_t first_row, int64_t first_column) {
    const T* const from = x.data + first_row * x.stride + first_column;
    const int rows_from = within(x.rows - first_row, kTile);
    const int columns_from = within(x.width - first_column, kWidth);
    if (start == from && rows == rows_from && columns == columns_from) return;
    start = from;
    rows = rows_from;
    columns = columns_from;
    if (x.width % Pack<T>::kSize == 0) {
      fill<Pack<T>::kSize>(
          x.stride, [](T* to, const T* place, bool inside) { copy_async_16(to, place, inside); });
    } else {
      fill<1>(x.stride, [](T* to, const T* place, bool inside) { *to = inside ? *place : T{}; });
    }
  }

 private:
  __device__ static int within(int64_t count, int most) {
    return static_cast<int>(count < 0 ? 0 : count < most ? count : most);
  }

  // Calls copy(to, from, whether there is such a place in the matrix) for every kSize neighbours.
  template <int kSize, typename Copy>
  __device__ void fill(int64_t stride, const Copy& copy) {
    constexpr int kRowParts = kWidth / kSize;
    const int c = static_cast<int>(threadIdx.x) % kRowParts * kSize;
#pragma unroll 1  // else many addresses take many registers
    for (int r = static_cast<int>(threadIdx.x) / kRowParts; r < kTile;
         r += kTileThreads / kRowParts) {
      const bool inside = r < rows && c < columns;
      copy(elements + r * kStride + c, inside ? start + r * stride + c : start, inside);
    }
  }
};

// A barrier behind which tiles are full.
__device__ inline void wait_for_tiles() {
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
}

// One thread's part of kTile times kTile elements.
template <typename T>
using TileElements = Compute<T>[TileThread<T>::kRows][TileThread<T>::kColumns];

// kTile times kTile coefficients, by way of shared memory.
template <typename T>
struct Coefficients {
  static constexpr int kStride = kTile + Pack<T>::kSize;
  static constexpr int kElements = kTile * kStride;

  T* elements;

  // The threads' elements, times a factor. A barrier must follow.
  __device__ void hold(const TileElements<T>& x, T factor) {
    using Thread = TileThread<T>;
#pragma unroll
    for (int i = 0; i < Thread::kRows; ++i) {
#pragma unroll
      for (int j = 0; j < Thread::kColumns; ++j)
        elements[Thread::row(i) * kStride + Thread::column(j)] = x[i][j] * factor;
    }
  }
};

// Neighbours in a row, loaded and stored at once.
template <typename T, int kSize>
struct alignas(kSize * sizeof(T)) Run {
  T elements[kSize];
};

// One thread's part of kTile rows and as many columns as a tile has.
template <typename T>
struct TileSums {
  using C = Compute<T>;
  using Thread = TileThread<T>;
  static constexpr int kColumns = kTileWidth<T> / Thread::kLanes, kRun = Thread::kRun;

  C sums[Thread::kRows][kColumns] = {};

  __device__ static int column(int c) {
    return c / kRun * (kRun * Thread::kLanes) + Thread::lane() * kRun + c % kRun;
  }

  __device__ bool finite() const {
    C total = 0;
    for (const auto& row : sums)
      for (const C sum : row) total += sum - sum;
    return total == 0;
  }

  // Writes them to the rows of y from first_row and the columns from first_column on.
  __device__ void store_rows(const HeadRows<T>& y, int64_t first_row, int64_t first_column) const {
#pragma unroll
    for (int i = 0; i < Thread::kRows; ++i) {
      const int64_t row = first_row + Thread::row(i);
      if (row >= y.rows) continue;
#pragma unroll
      for (int c = 0; c < kColumns; c += kRun)
        store_run(y.data + row * y.stride, first_column + column(c), y.width, &sums[i][c]);
    }
  }

 private:
  __device__ static void store_run(T* row, int64_t start, int64_t width, const C* values) {
    if (width % kRun == 0) {
      Run<T, kRun> run;
#pragma unroll
      for (int r = 0; r < kRun; ++r) store(run.elements + r, values[r]);
      if (start < width) *reinterpret_cast<Run<T, kRun>*>(row + start) = run;
    } else {
#pragma unroll
      for (int r = 0; r < kRun; ++r)
        if (start + r < width) store(row + start + r, values[r]);
    }
  }
};

// sums += a b^T, term by term, so that every kernel gets the same sums.
template <typename T>
__device__ void multiply(TileElements<T>& sums, const Tile<T>& a, const Tile<T>& b) {
  using Thread = TileThread<T>;
#pragma unroll 1  // more takes more registers than there are
  for (int c = 0; c < a.columns; c += Pack<T>::kSize) {
    Pack<T> x[Thread::kRows], y[Thread::kColumns];
#pragma unroll
    for (int i = 0; i < Thread::kRows; ++i)
      x[i] = *reinterpret_cast<const Pack<T>*>(a.elements + Thread::row(i) * a.kStride + c);
#pragma unroll
    for (int j = 0; j < Thread::kColumns; ++j)
      y[j] = *reinterpret_cast<const Pack<T>*>(b.elements + Thread::column(j) * b.kStride + c);
#pragma unroll
    for (int e = 0; e < Pack<T>::kSize; ++e) {
#pragma unroll
      for (int i = 0; i < Thread::kRows; ++i) {
#pragma unroll
        for (int j = 0; j < Thread::kColumns; ++j)
          sums[i][j] += x[i].elements[e] * y[j].elements[e];
      }
    }
  }
}

// sums += coefficients * x, where a coefficient of 0 hides even what is not a number.
template <typename T>
__device__ void combine(TileSums<T>& sums, const Coefficients<T>& coefficients, const Tile<T>& x,
                        bool /* exact: always */) {
  using Thread = TileThread<T>;
  using Sums = TileSums<T>;
  constexpr int kSize = Pack<T>::kSize;
  for (int k = 0; k < x.rows; k += kSize) {
    Pack<T> factors[Thread::kRows];
#pragma unroll
    for (int i = 0; i < Thread::kRows; ++i)
      factors[i] = *reinterpret_cast<const Pack<T>*>(coefficients.elements +
                                                     Thread::row(i) * coefficients.kStride + k);
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
#pragma unroll
      for (int c = 0; c < Sums::kColumns; c += Sums::kRun) {
        if (c * Thread::kLanes >= x.columns) break;
        const auto terms =
            *reinterpret_cast<const Pack<T>*>(x.elements + (k + e) * x.kStride + Sums::column(c));
#pragma unroll
        for (int i = 0; i < Thread::kRows; ++i) {
          const T factor = factors[i].elements[e];
          if (factor == 0) continue;
#pragma unroll
          for (int r = 0; r < kSize; ++r) sums.sums[i][c + r] += factor * terms.elements[r];
        }
      }
    }
  }
}

}  // namespace gs::backend
