// The small matrix products of attention: kTile times kTile weights at a time, from tiles of rows
// in shared memory.
#pragma once

#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/launch.h"

namespace gs::backend {

// Thread y * kTileSide + x of a block computes the elements of a tile whose rows are y, y +
// kTileSide, ... and whose columns are x, x + kTileSide, ...: a step each.
constexpr int kTile = 32, kTileSide = 8, kTileSteps = kTile / kTileSide;
constexpr int kTileThreads = kTileSide * kTileSide;
constexpr int kTileBlocks = 4;  // of a multiprocessor at least; bounds the registers of a thread

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

// The place of one thread's elements.
__device__ inline int tile_x() { return static_cast<int>(threadIdx.x) % kTileSide; }
__device__ inline int tile_row(int step) {
  return static_cast<int>(threadIdx.x) / kTileSide + step * kTileSide;
}
__device__ inline int tile_column(int step) { return tile_x() + step * kTileSide; }

// kTile rows and kWidth columns in shared memory; what lies outside of the matrix is 0.
template <typename T, int kWidth>
struct Tile {
  using C = Compute<T>;
  // Rows are four banks apart, so that threads which read neighbouring rows do not collide.
  static constexpr int kStride = kWidth + Pack<C>::kSize;
  static constexpr int kElements = kTile * kStride;

  C* elements;
  int64_t row = -1, column = -1;  // of the matrix, where the tile starts

  // Fills the tile, unless it holds this part already. Barriers before and after are the caller's.
  __device__ void hold(const HeadRows<const T>& x, int64_t first_row, int64_t first_column) {
    if (row == first_row && column == first_column) return;
    row = first_row;
    column = first_column;
    if (x.width % Pack<T>::kSize == 0) {
      fill_packs(x);
    } else {
      fill(x);
    }
  }

 private:
  __device__ void fill(const HeadRows<const T>& x) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kWidth; i += kTileThreads) {
      const int r = i / kWidth, c = i % kWidth;
      const bool inside = row + r < x.rows && column + c < x.width;
      elements[r * kStride + c] = inside ? load(x.data + (row + r) * x.stride + column + c) : C{0};
    }
  }

  __device__ void fill_packs(const HeadRows<const T>& x) {
    constexpr int kSize = Pack<T>::kSize, kRowPacks = kWidth / kSize;
    constexpr int kParts = kSize / Pack<C>::kSize;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kRowPacks; i += kTileThreads) {
      const int r = i / kRowPacks, c = i % kRowPacks * kSize;
      Pack<T> pack{};
      if (row + r < x.rows && column + c < x.width)
        pack = *reinterpret_cast<const Pack<T>*>(x.data + (row + r) * x.stride + column + c);
      for (int part = 0; part < kParts; ++part) {
        Pack<C> values;
        for (int e = 0; e < Pack<C>::kSize; ++e)
          values.elements[e] = load(pack.elements + part * Pack<C>::kSize + e);
        *reinterpret_cast<Pack<C>*>(elements + r * kStride + c + part * Pack<C>::kSize) = values;
      }
    }
  }
};

// One thread's part of kTile times kTile elements.
template <typename C>
using TileElements = C[kTileSteps][kTileSteps];

// sums += a b^T, term by term, so that every kernel gets the same sums.
template <typename T, int kWidth, typename C = Compute<T>>
__device__ void multiply(TileElements<C>& sums, const Tile<T, kWidth>& a,
                         const Tile<T, kWidth>& b) {
  constexpr int kStride = Tile<T, kWidth>::kStride;
#pragma unroll 2
  for (int c = 0; c < kWidth; c += Pack<C>::kSize) {
    Pack<C> x[kTileSteps], y[kTileSteps];
#pragma unroll
    for (int s = 0; s < kTileSteps; ++s) {
      x[s] = *reinterpret_cast<const Pack<C>*>(a.elements + tile_row(s) * kStride + c);
      y[s] = *reinterpret_cast<const Pack<C>*>(b.elements + tile_column(s) * kStride + c);
    }
#pragma unroll
    for (int e = 0; e < Pack<C>::kSize; ++e) {
#pragma unroll
      for (int i = 0; i < kTileSteps; ++i) {
#pragma unroll
        for (int j = 0; j < kTileSteps; ++j) sums[i][j] += x[i].elements[e] * y[j].elements[e];
      }
    }
  }
}

// sums = the products of rows of x from x_row on and rows of y from y_row on, over all columns. All
// threads of the block call it; it begins with a barrier.
template <typename T, int kWidth, typename C = Compute<T>>
__device__ void tile_products(TileElements<C>& sums, Tile<T, kWidth>& a, const HeadRows<const T>& x,
                              int64_t x_row, Tile<T, kWidth>& b, const HeadRows<const T>& y,
                              int64_t y_row) {
  for (int i = 0; i < kTileSteps; ++i)
    for (int j = 0; j < kTileSteps; ++j) sums[i][j] = 0;
  int64_t column = 0;
  do {
    __syncthreads();
    a.hold(x, x_row, column);
    b.hold(y, y_row, column);
    __syncthreads();
    multiply(sums, a, b);
    column += kWidth;
  } while (column < x.width);
}

// kTile times kTile coefficients in shared memory.
template <typename C>
struct Coefficients {
  static constexpr int kStride = kTile + Pack<C>::kSize;
  static constexpr int kElements = kTile * kStride;

  C* elements;

  __device__ C& at(int row, int column) const { return elements[row * kStride + column]; }
};

// Neighbours in a row, loaded and stored at once.
template <typename T, int kSize>
struct alignas(kSize * sizeof(T)) Run {
  T elements[kSize];
};

// One thread's part of kTile rows and kWidth columns: of each of its rows runs of kRun neighbours.
template <typename C, int kWidth>
struct TileSums {
  static constexpr int kColumns = kWidth / kTileSide;
  static constexpr int kRun = kColumns < Pack<C>::kSize ? kColumns : Pack<C>::kSize;

  C sums[kTileSteps][kColumns] = {};

  __device__ static int column(int c) {
    return c / kRun * (kRun * kTileSide) + tile_x() * kRun + c % kRun;
  }

  // sums += coefficients * the first `count` rows of x, where a coefficient of 0 hides even what is
  // not a number.
  template <typename T>
  __device__ void combine(const Coefficients<C>& coefficients, const Tile<T, kWidth>& x,
                          int64_t count) {
    constexpr int kSize = Pack<C>::kSize;
    for (int k = 0; k < kTile && k < count; k += kSize) {
      Pack<C> factors[kTileSteps];
#pragma unroll
      for (int i = 0; i < kTileSteps; ++i)
        factors[i] = *reinterpret_cast<const Pack<C>*>(&coefficients.at(tile_row(i), k));
#pragma unroll
      for (int e = 0; e < kSize; ++e) add_row(factors, e, x.elements + (k + e) * x.kStride);
    }
  }

  // Writes them to the rows of y from first_row and the columns from first_column on.
  template <typename T>
  __device__ void store_rows(const HeadRows<T>& y, int64_t first_row, int64_t first_column) const {
#pragma unroll
    for (int i = 0; i < kTileSteps; ++i) {
      const int64_t row = first_row + tile_row(i);
      if (row >= y.rows) continue;
#pragma unroll
      for (int c = 0; c < kColumns; c += kRun)
        store_run(y.data + row * y.stride, first_column + column(c), y.width, &sums[i][c]);
    }
  }

 private:
  __device__ void add_row(const Pack<C> (&factors)[kTileSteps], int e, const C* row) {
    C terms[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; c += kRun) {
      const auto run = *reinterpret_cast<const Run<C, kRun>*>(row + column(c));
#pragma unroll
      for (int r = 0; r < kRun; ++r) terms[c + r] = run.elements[r];
    }
#pragma unroll
    for (int i = 0; i < kTileSteps; ++i) {
      const C factor = factors[i].elements[e];
      if (factor != 0) {
#pragma unroll
        for (int c = 0; c < kColumns; ++c) sums[i][c] += factor * terms[c];
      }
    }
  }

  template <typename T>
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

// Calls `function` with the columns that a tile holds, as a constant, for matrices of that width.
template <typename T, typename Function>
void dispatch_tile_width(int64_t width, Function&& function) {
  if (width <= 16) return function(std::integral_constant<int, 16>());
  if constexpr (sizeof(T) <= 4) {
    if (width > 32) return function(std::integral_constant<int, 64>());
  }
  function(std::integral_constant<int, 32>());
}

}  // namespace gs::backend
