#pragma once

#include <algorithm>
#include <bit>

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/map.cuh"
#include "framework/core/shape.h"

namespace gs::backend {

struct Smaller {  // NaN wins
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

// Rows (outer, length, inner), each cut into `pieces` of so many elements, the last one shorter.
struct Pieces {
  Rows rows;
  int64_t pieces = 1, length = 0;

  static Pieces whole(Rows rows) { return {rows, 1, rows.length}; }
  // Enough pieces to fill a device; they depend on the sizes alone, so that results do.
  static Pieces of(Rows rows);
  __host__ __device__ int64_t count() const { return rows.outer * pieces * rows.inner; }
};

inline Pieces Pieces::of(Rows rows) {
  constexpr int64_t kBlocks = 1024, kColumns = 32, kMultiple = 16;
  if (rows.length == 0 || rows.count() == 0) return whole(rows);
  const bool dense = rows.inner == 1;
  const int64_t blocks = dense ? rows.outer : rows.outer * ((rows.inner + kColumns - 1) / kColumns);
  const int64_t wanted = std::max<int64_t>(1, kBlocks / blocks);
  int64_t length = std::max<int64_t>(dense ? 4096 : 64, (rows.length + wanted - 1) / wanted);
  length = (length + kMultiple - 1) / kMultiple * kMultiple;
  if (length >= rows.length) return whole(rows);
  return {rows, (rows.length + length - 1) / length, length};
}

// How the threads of a block share pieces: each has some lanes of a warp, the whole block, or a
// column of a block's tile.
enum class Sharing { kLanes, kBlock, kColumn };
struct RowPlan {
  Sharing sharing;
  int members;    // threads of a piece, a power of two
  bool packed;    // rows are dense and their length is one of packs
  int64_t tasks;  // of blocks: with kColumn a tile, else kThreads / members pieces in their order
};

// What a thread sees of the piece of a row that it shares with `members` threads, a power of two:
// its packs of kSize elements, and the reduction of a value of each.
template <int kSize>
struct Line {
  static constexpr int kPack = kSize;
  int64_t row = 0, part = 0;      // among all rows, and among all pieces: (outer, pieces, inner)
  int64_t start = 0, stride = 1;  // of the whole row in memory
  int64_t first = 0, last = 0;    // this thread's first place in the row, the end of the piece
  int64_t step = 1;               // from each of its places to the next
  bool leads = false;             // one thread of each piece; none without a piece
  Sharing sharing;
  int members;

  // Calls body(where the pack is in memory, its place in the row).
  template <typename Body>
  __device__ void for_each(Body body) const {
    for (int64_t place = first; place < last; place += step) body(start + place * stride, place);
  }

  // What one thread of the piece wrote to memory, the others may read then; all threads of the
  // block call it.
  __device__ void synchronize() const {
    if (sharing == Sharing::kLanes) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  // What all threads of the piece get; all threads of the block call it.
  template <typename T, typename Operation>
  __device__ T reduce(T value, Operation operation, T neutral) const {
    __shared__ T scratch[kThreads];
    if (sharing == Sharing::kBlock) return block_reduce(value, scratch, operation, neutral);
    if (sharing == Sharing::kLanes) {
      for (int distance = members / 2; distance > 0; distance /= 2)
        value = operation(value, __shfl_xor_sync(kAllLanes, value, distance));
      return value;
    }
    const int thread = static_cast<int>(threadIdx.x), width = kThreads / members;
    __syncthreads();  // the last use of the scratch is over
    scratch[thread] = value;
    for (int half = kThreads / 2; half >= width; half /= 2) {
      __syncthreads();
      if (thread < half) scratch[thread] = operation(scratch[thread], scratch[thread + half]);
    }
    __syncthreads();
    return scratch[thread % width];
  }
};

// The line of this thread in its block's task.
template <int kSize>
__device__ Line<kSize> line_of(const Pieces& pieces, const RowPlan& plan, int64_t task) {
  const int members = plan.members;
  const Rows& rows = pieces.rows;
  const int thread = static_cast<int>(threadIdx.x), width = kThreads / members;
  int64_t block = task, column = 0;  // block: (outer, pieces)
  int member = thread % members;
  if (plan.sharing == Sharing::kColumn) {
    const int64_t tiles = (rows.inner + width - 1) / width;
    block = task / tiles;
    column = (task - block * tiles) * width + thread % width;
    member = thread / width;
  } else {
    block = task * width + thread / members;
  }
  const int64_t outer = block / pieces.pieces, piece = block - outer * pieces.pieces;
  const int64_t end = (piece + 1) * pieces.length;
  const bool exists = outer < rows.outer && column < rows.inner;
  Line<kSize> line;
  line.row = outer * rows.inner + column;
  line.part = block * rows.inner + column;
  line.start = outer * rows.length * rows.inner + column;
  line.stride = rows.inner;
  line.first = piece * pieces.length + member * kSize;
  line.last = !exists ? 0 : end < rows.length ? end : rows.length;
  line.step = members * kSize;
  line.leads = exists && member == 0;
  line.sharing = plan.sharing;
  line.members = members;
  return line;
}

// Short dense rows share a warp, long ones take a block each; of rows side by side a column each.
inline RowPlan plan_of(const Pieces& pieces, int64_t pack_size) {
  constexpr int64_t kLongestOfWarp = 1024;
  const auto power = [](int64_t count) {
    return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(count, 1024))));
  };
  const Rows& rows = pieces.rows;
  if (rows.inner == 1) {
    const bool packed = rows.length % pack_size == 0 && pieces.length % pack_size == 0;
    const int64_t packs = packed ? pieces.length / pack_size : pieces.length;
    if (pieces.length > kLongestOfWarp) return {Sharing::kBlock, kThreads, packed, pieces.count()};
    const int members = std::min(kWarp, power(packs)), width = kThreads / members;
    return {Sharing::kLanes, members, packed, (pieces.count() + width - 1) / width};
  }
  // Few threads a column where it is short, no more columns than there are.
  const int most = kThreads / std::min(8, power(pieces.length / 8 + 1));
  const int width = std::min(most, power(rows.inner));
  return {Sharing::kColumn, kThreads / width, false,
          rows.outer * pieces.pieces * ((rows.inner + width - 1) / width)};
}

// Calls run(size) with the number of elements of a pack, kSize or 1.
template <int kSize, typename Run>
void with_pack(const RowPlan& plan, Run run) {
  if constexpr (kSize > 1) {
    if (plan.packed) return run(std::integral_constant<int, kSize>());
  }
  run(std::integral_constant<int, 1>());
}

template <int kSize, typename Body>
__global__ void rows_kernel(Pieces pieces, RowPlan plan, Body body) {
  for (int64_t task = blockIdx.x; task < plan.tasks; task += gridDim.x)
    body(line_of<kSize>(pieces, plan, task));
}

// Calls body(line) in all threads, for some Line, so that each piece of each row is shared by some
// threads; those that have none call it too. Packs have kSize elements where rows are dense and
// their lengths allow it, else one. What the rows are made of begins where its memory does.
template <int kSize, typename Body>
void run_rows(const char* operation, Cuda device, const Pieces& pieces, const Body& body) {
  if (pieces.count() == 0) return;
  const RowPlan plan = plan_of(pieces, kSize);
  with_pack<kSize>(plan, [&](auto size) {
    launch(operation, device, grid_of(plan.tasks * kThreads), rows_kernel<size, Body>, pieces, plan,
           body);
  });
}

}  // namespace gs::backend
