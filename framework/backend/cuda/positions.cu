#include "framework/backend/cuda/positions.cuh"

#include <algorithm>
#include <limits>

#include "framework/backend/cuda/block.cuh"

// A block has a range of rows and reads all indices, which the second-level cache holds: it learns
// how many belong to rows before its own, where its positions therefore begin, and which they are.
// No block waits for another, nothing is sorted but what one warp does in a few steps, and the
// order is that of the indices.
namespace gs::backend {
namespace {

constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kMostRows = 1024;  // of a block

__device__ unsigned lanes_below() { return (1u << (threadIdx.x % kWarp)) - 1; }

// The indices of a warp, 32 at a time, and those of them that are in the block's range.
struct Share {
  const int32_t* indices;
  int64_t begin, end, skipped;  // begin and end: of the warp's
  int64_t first_row, last_row;  // of the block's rows, the last one excluded

  template <typename Body>
  __device__ void for_each(Body body) const {
    for (int64_t at = begin; at < end; at += kWarp) {
      const int64_t i = at + threadIdx.x % kWarp;
      // No row is as large.
      const int64_t index = i < end ? indices[i] : std::numeric_limits<int32_t>::max();
      const bool counts = i < end && index != skipped;
      body(i, index, counts && index < first_row, counts && index >= first_row && index < last_row);
    }
  }
};

// Turns `count` counts into where each begins, from `begin` on; one warp.
__device__ void scan(int32_t* counts, int64_t count, int32_t begin) {
  const int64_t lane = threadIdx.x % kWarp;
  for (int64_t at = 0; at < count; at += kWarp) {
    const int32_t own = at + lane < count ? counts[at + lane] : 0;
    int32_t sum = own;
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
      const int32_t before = __shfl_up_sync(kAllLanes, sum, distance);
      if (lane >= distance) sum += before;
    }
    if (at + lane < count) counts[at + lane] = begin + sum - own;
    begin += __shfl_sync(kAllLanes, sum, kWarp - 1);
  }
  __syncwarp();
}

// `found` (indices) is scratch: the positions of each block's rows, ascending.
__global__ void positions_kernel(int32_t* start, int32_t* order, int32_t* found,
                                 const int32_t* indices, int64_t count, int64_t rows,
                                 int64_t rows_each, int64_t skipped) {
  __shared__ int32_t counts[kMostRows];  // of each row, then where its next position goes
  __shared__ int32_t before[kWarps], within[kWarps];
  const int64_t lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int64_t each = (count + kThreads - 1) / kThreads * kWarp;
  const int64_t first_row = blockIdx.x * rows_each;
  const int64_t last_row = first_row + rows_each < rows ? first_row + rows_each : rows;
  const int64_t end = (warp + 1) * each < count ? (warp + 1) * each : count;
  const Share share{indices, warp * each, end, skipped, first_row, last_row};

  for (int64_t row = threadIdx.x; row < rows_each; row += kThreads) counts[row] = 0;
  __syncthreads();
  int32_t earlier = 0, own = 0;
  share.for_each([&](int64_t, int64_t index, bool is_before, bool is_within) {
    earlier += is_before ? 1 : 0;
    own += is_within ? 1 : 0;
    if (is_within) atomicAdd(counts + (index - first_row), 1);
  });
  earlier = warp_sum(earlier);
  own = warp_sum(own);
  if (lane == 0) {
    before[warp] = earlier;
    within[warp] = own;
  }
  __syncthreads();

  int32_t begin = 0, next = 0, last = 0;  // of the block's positions, and of the warp's
  for (int w = 0; w < kWarps; ++w) begin += before[w];
  last = next = begin;
  for (int w = 0; w < kWarps; ++w) {
    last += within[w];
    if (w < warp) next += within[w];
  }
  share.for_each([&](int64_t i, int64_t, bool, bool is_within) {
    const unsigned mask = __ballot_sync(kAllLanes, is_within);
    if (is_within) found[next + __popc(mask & lanes_below())] = static_cast<int32_t>(i);
    next += __popc(mask);
  });
  __syncthreads();

  if (warp != 0) return;
  scan(counts, last_row - first_row, begin);
  for (int64_t row = first_row + lane; row < last_row; row += kWarp)
    start[row] = counts[row - first_row];
  if (last_row == rows && lane == 0) start[rows] = last;
  __syncwarp();
  for (int64_t at = begin; at < last; at += kWarp) {
    const bool exists = at + lane < last;
    const int32_t position = exists ? found[at + lane] : 0;
    const int32_t row = exists ? static_cast<int32_t>(indices[position] - first_row) : -1;
    const unsigned same = __match_any_sync(kAllLanes, row);
    const int rank = __popc(same & lanes_below());
    if (exists) order[counts[row] + rank] = position;
    __syncwarp();
    if (exists && rank == 0) counts[row] += __popc(same);
    __syncwarp();
  }
}

}  // namespace

Positions positions_by_row(const char* operation, Cuda device, const Array& indices, int64_t rows,
                           std::optional<int64_t> skipped) {
  constexpr int64_t kBlocks = 512, kFewestRows = 64;
  const int64_t count = indices.elements();
  check(count <= std::numeric_limits<int32_t>::max(),
        "{}: takes at most 2147483647 indices on CUDA, got {}; split them", operation, count);
  const Device place = Device::cuda(device.index);
  Positions positions{Array::empty({rows + 1}, kInt32, place),
                      Array::empty({count}, kInt32, place)};
  Array found = Array::empty({count}, kInt32, place);
  const int64_t rows_each =
      std::clamp<int64_t>((rows + kBlocks - 1) / kBlocks, kFewestRows, kMostRows);
  const int64_t blocks = std::max<int64_t>(1, (rows + rows_each - 1) / rows_each);
  launch(operation, device, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads)}, positions_kernel,
         positions.start.data<int32_t>(), positions.order.data<int32_t>(), found.data<int32_t>(),
         indices.data<int32_t>(), count, rows, rows_each, skipped.value_or(-1));
  return positions;
}

}  // namespace gs::backend
