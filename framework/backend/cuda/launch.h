#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "framework/backend/cuda/runtime.h"

// Dynamic shared memory of a kernel as an array of `type`, aligned to 128 bytes. The emulation
// defines its own.
#ifndef GS_DYNAMIC_SHARED
#define GS_DYNAMIC_SHARED(type, name)                                 \
  extern __shared__ __align__(128) unsigned char gs_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(gs_dynamic_shared)
#endif

namespace gs::backend {

// How a kernel is spread: blocks, threads of a block, bytes of dynamic shared memory.
struct Grid {
  dim3 blocks, threads;
  int64_t shared_bytes = 0;
};

constexpr int kThreads = 256;  // of a block, where nothing speaks for another number

// One thread for each of `count` elements, up to as many blocks as fill any device; the kernel
// steps over the rest: for (int64_t i = first_element(); i < count; i += element_step()).
inline Grid grid_of(int64_t count, int64_t elements_per_thread = 1) {
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t per_block = kThreads * elements_per_thread;
  return {dim3(static_cast<unsigned>(
              std::clamp<int64_t>((count + per_block - 1) / per_block, 1, kMostBlocks))),
          dim3(kThreads)};
}

// Starts `kernel` on the stream of the device; an error names the operation, this file and line.
// Grids without work must not be launched: callers return early.
template <typename... Parameters, typename... Arguments>
void launch(const char* operation, Cuda device, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  constexpr int64_t kFreeSharedBytes = 48 * 1024;  // more must be asked for
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream_of(device);
  if (grid.shared_bytes > kFreeSharedBytes) {
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared_bytes)),
               operation);
  }
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), operation);
}

#if defined(__CUDACC__) || defined(GS_CUDA_EMULATION)
__device__ inline int64_t first_element() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t element_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }
#endif

}  // namespace gs::backend
