// Bugs in the use of shared memory.
#include <cstdint>

#include "framework/backend/cuda/mma.cuh"
#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

constexpr int kWidth = Bench::kWidth;

__global__ void missing_barrier(const float* x, float* y) {
  __shared__ float row[kWidth];
  row[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = row[(threadIdx.x + 1) % kWidth];
}

__global__ void missing_second_barrier(const float* x, float* y) {
  __shared__ float row[kWidth];
  float sum = 0;
  for (int i = 0; i < Bench::kRows; ++i) {
    row[threadIdx.x] = x[i * kWidth + threadIdx.x];
    __syncthreads();
    sum += row[kWidth - 1 - threadIdx.x];
  }
  y[threadIdx.x] = sum;
}

__global__ void warp_without_barriers(const float* x, float* y) {
  __shared__ float values[32];
  values[threadIdx.x] = x[threadIdx.x];
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    if (threadIdx.x < distance) values[threadIdx.x] += values[threadIdx.x + distance];
  }
  if (threadIdx.x == 0) *y = values[0];
}

__global__ void beyond_static(float* y) {
  __shared__ float values[64];
  values[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = values[threadIdx.x / 2];
}

__global__ void beyond_dynamic(float* y, int count) {
  GS_DYNAMIC_SHARED(float, values);
  values[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = values[threadIdx.x % static_cast<unsigned>(count)];
}

template <typename T>
__global__ void unwritten_static(T* y) {
  __shared__ T values[64];
  if (threadIdx.x < 63) values[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = values[threadIdx.x];
}

__global__ void unwritten_dynamic(float* y) {
  GS_DYNAMIC_SHARED(float, values);
  if (threadIdx.x < 63) values[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = values[threadIdx.x];
}

__device__ void fetch(float* row, const float* x) {
  if (threadIdx.x < kWidth / 4) backend::copy_async_16(row + threadIdx.x * 4, x + threadIdx.x * 4);
  backend::commit_copies();
}

__global__ void copy_not_awaited(const float* x, float* y) {
  __shared__ __align__(16) float row[kWidth];
  fetch(row, x);
  __syncthreads();
  y[threadIdx.x] = row[threadIdx.x];
}

// Two stages; the next fetch overwrites what others may still read, where there is no barrier.
template <bool barrier>
__global__ void pipeline(const float* x, float* y) {
  __shared__ __align__(16) float rows[2][kWidth];
  float sum = 0;
  fetch(rows[0], x);
  for (int i = 0; i < Bench::kRows; ++i) {
    if (i + 1 < Bench::kRows) {
      fetch(rows[(i + 1) % 2], x + (i + 1) * kWidth);
      backend::wait_for_copies<1>();
    } else {
      backend::wait_for_copies<0>();
    }
    __syncthreads();
    sum += rows[i % 2][kWidth - 1 - threadIdx.x];
    if (barrier) __syncthreads();
  }
  y[threadIdx.x] = sum;
}

std::vector<float> ones_but_last() {
  std::vector<float> ones(64, 1.0f);
  ones.back() = 0;
  return ones;
}

}  // namespace

std::vector<Bug> shared_memory_bugs() {
  return {
      {"missing_barrier", "no barrier between write and read",
       [](Bench& b) {
         start(missing_barrier, 1, kWidth, 0, b.first, b.x, b.y);
         std::vector<float> right;
         for (size_t i = 0; i < kWidth; ++i) right.push_back(b.host_x[(i + 1) % kWidth]);
         return right;
       }},
      {"missing_second_barrier", "no barrier between read and the next write",
       [](Bench& b) {
         start(missing_second_barrier, 1, kWidth, 0, b.first, b.x, b.y);
         return b.reversed_sums();
       }},
      {"warp_without_barriers", "lanes taken to run in step, without __syncwarp",
       [](Bench& b) {
         start(warp_without_barriers, 1, 32, 0, b.first, b.x, b.y);
         return std::vector<float>{31 * 32 / 2};
       }},
      {"beyond_static_shared", "access beyond static shared memory",
       [](Bench& b) {
         start(beyond_static, 1, kWidth, 0, b.first, b.y);
         return std::vector<float>(kWidth, 1.0f);
       }},
      {"beyond_dynamic_shared", "access beyond dynamic shared memory",
       [](Bench& b) {
         start(beyond_dynamic, 1, kWidth, 64 * sizeof(float), b.first, b.y, 64);
         return std::vector<float>(kWidth, 1.0f);
       }},
      {"unwritten_static_shared", "static shared memory read but never written",
       [](Bench& b) {
         start(unwritten_static<float>, 1, 64, 0, b.first, b.y);
         return ones_but_last();
       }},
      {"unwritten_dynamic_shared", "dynamic shared memory read but never written",
       [](Bench& b) {
         start(unwritten_dynamic, 1, 64, 64 * sizeof(float), b.first, b.y);
         return ones_but_last();
       }},
      {"copy_not_awaited", "asynchronous copy that nobody waits for",
       [](Bench& b) {
         start(copy_not_awaited, 1, kWidth, 0, b.first, b.x, b.y);
         return std::vector<float>(b.host_x.begin(), b.host_x.begin() + kWidth);
       }},
      {"pipeline_without_barrier", "asynchronous copy into a stage that is still read",
       [](Bench& b) {
         start(pipeline<false>, 1, kWidth, 0, b.first, b.x, b.y);
         return b.reversed_sums();
       }},
  };
}

std::vector<Bug> sound_programs() {
  return {
      {"sound", "a pipeline with all its barriers, then another stream that waits for it",
       [](Bench& b) {
         cudaEvent_t event = nullptr;
         check_call(cudaEventCreate(&event), "cudaEventCreate");
         float* sums = nullptr;
         check_call(cudaMalloc(&sums, kWidth * sizeof(float)), "cudaMalloc");
         start(pipeline<true>, 1, kWidth, 0, b.first, b.x, sums);
         check_call(cudaEventRecord(event, b.first), "cudaEventRecord");
         check_call(cudaStreamWaitEvent(b.second, event, 0), "cudaStreamWaitEvent");
         check_call(
             cudaMemcpyAsync(b.y, sums, kWidth * sizeof(float), cudaMemcpyDeviceToDevice, b.second),
             "cudaMemcpyAsync");
         check_call(cudaFreeAsync(sums, b.second), "cudaFreeAsync");
         check_call(cudaStreamSynchronize(b.second), "cudaStreamSynchronize");
         check_call(cudaEventDestroy(event), "cudaEventDestroy");
         return b.reversed_sums();
       }},
  };
}

}  // namespace gs::cuda_emulation
