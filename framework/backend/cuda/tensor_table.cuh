#pragma once

#include <span>

#include "framework/backend/cuda/map.cuh"

namespace gs::backend {

// Arrays of equal length that are stepped through together, and what else their step needs.
template <int kArrays>
struct TensorEntry {
  void* arrays[kArrays];
  int64_t elements;
  double decay = 0;
  int64_t first_block = 0;  // of the launch; set by launch_tables
};

// Many tensors in one launch: each block works on a piece of one. Goes to the kernel by value.
template <int kArrays>
struct TensorTable {
  static constexpr int64_t kPiece = 4096;                            // elements of a block
  static constexpr int kMost = 4000 / sizeof(TensorEntry<kArrays>);  // parameters hold 4 KB

  TensorEntry<kArrays> entries[kMost];
  int count = 0;

  // The entry to which a block belongs: the last one that begins no later.
  __device__ int entry_of(int64_t block) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (entries[middle].first_block <= block ? low : high) = middle;
    }
    return low;
  }
};

// Calls start(table, blocks) for as few tables as hold all entries that have elements.
template <int kArrays, typename Start>
void for_each_table(std::span<const TensorEntry<kArrays>> entries, const Start& start) {
  TensorTable<kArrays> table;
  int64_t blocks = 0;
  for (const TensorEntry<kArrays>& entry : entries) {
    if (entry.elements == 0) continue;
    if (table.count == table.kMost) {
      start(table, blocks);
      table.count = 0;
      blocks = 0;
    }
    TensorEntry<kArrays>& added = table.entries[table.count++];
    added = entry;
    added.first_block = blocks;
    blocks += (entry.elements + table.kPiece - 1) / table.kPiece;
  }
  if (table.count > 0) start(table, blocks);
}

// step(values, constants) changes one element of each array; those of the first kWritten are
// written. The constants are those of the entry, step.constants(entry); a step that does not
// move, if it can say so, does nothing.
template <typename T, int kWritten, int kArrays, typename Step>
__global__ void tensor_step_kernel(TensorTable<kArrays> table, Step step) {
  constexpr int kSize = kPackSize<T>;
  const int index = table.entry_of(blockIdx.x);
  const int64_t begin = (blockIdx.x - table.entries[index].first_block) * table.kPiece;
  const int64_t end = std::min(table.entries[index].elements, begin + table.kPiece);
  if constexpr (requires { step.moves(); }) {
    if (!step.moves()) return;
  }
  const auto constants = step.constants(table.entries[index].decay);
  T* arrays[kArrays];
#pragma unroll
  for (int a = 0; a < kArrays; ++a) arrays[a] = static_cast<T*>(table.entries[index].arrays[a]);
  for (int64_t i = begin + threadIdx.x * kSize; i < end; i += blockDim.x * kSize) {
    Compute<T> values[kArrays];
    if (i + kSize <= end) {
      Pack<T, kSize> packs[kArrays];
#pragma unroll
      for (int a = 0; a < kArrays; ++a) packs[a] = load_pack<T, kSize>(arrays[a] + i);
#pragma unroll
      for (int k = 0; k < kSize; ++k) {
#pragma unroll
        for (int a = 0; a < kArrays; ++a) values[a] = load(packs[a].values + k);
        step(values, constants);
#pragma unroll
        for (int a = 0; a < kWritten; ++a) store(packs[a].values + k, values[a]);
      }
#pragma unroll
      for (int a = 0; a < kWritten; ++a) store_pack(arrays[a] + i, packs[a]);
    } else {
      for (int64_t k = i; k < end; ++k) {
#pragma unroll
        for (int a = 0; a < kArrays; ++a) values[a] = load(arrays[a] + k);
        step(values, constants);
#pragma unroll
        for (int a = 0; a < kWritten; ++a) store(arrays[a] + k, values[a]);
      }
    }
  }
}

// The step over all elements of all entries. Bound by memory.
template <typename T, int kWritten, int kArrays, typename Step>
void step_tensors(const char* operation, Cuda device, std::span<const TensorEntry<kArrays>> entries,
                  const Step& step) {
  for_each_table(entries, [&](const TensorTable<kArrays>& table, int64_t blocks) {
    launch(operation, device, {dim3(static_cast<unsigned>(blocks)), dim3(kThreads)},
           tensor_step_kernel<T, kWritten, kArrays, Step>, table, step);
  });
}

}  // namespace gs::backend
