// Bugs in barriers and warp collectives.
#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

__global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 32) {
    y[threadIdx.x] = 1;
    __syncthreads();
  } else {
    y[threadIdx.x] = 2;
    __syncthreads();
  }
}

__global__ void return_before_barrier(float* y, unsigned count) {
  if (threadIdx.x >= count) return;
  y[threadIdx.x] = 1;
  __syncthreads();
}

__global__ void absent_lanes(float* y, unsigned count) {
  float value = 1;
  if (threadIdx.x < count) value += __shfl_xor_sync(0xffffffffu, value, 1);
  y[threadIdx.x] = value;
}

// Lanes read neighbours that are not in the mask.
__global__ void lane_outside_mask(float* y) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x < 16) value = __shfl_down_sync(0x0000ffffu, value, 8);
  y[threadIdx.x] = value;
}

// A warp waits for lanes that wait for the block.
__global__ void deadlock(float* y) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  y[threadIdx.x] = 1;
}

}  // namespace

std::vector<Bug> collective_bugs() {
  return {
      {"divergent_barrier", "two branches with a __syncthreads each",
       [](Bench& b) {
         start(divergent_barrier, 1, 64, 0, b.first, b.y);
         std::vector<float> right(64, 2.0f);
         std::fill(right.begin(), right.begin() + 32, 1.0f);
         return right;
       }},
      {"return_before_barrier", "threads that return before others' __syncthreads",
       [](Bench& b) {
         start(return_before_barrier, 1, 64, 0, b.first, b.y, 40u);
         return std::vector<float>(40, 1.0f);
       }},
      {"absent_lanes", "a shuffle whose mask names lanes that never come",
       [](Bench& b) {
         start(absent_lanes, 1, 32, 0, b.first, b.y, 20u);
         return std::vector<float>(20, 2.0f);
       }},
      {"lane_outside_mask", "a shuffle that reads a lane outside its mask",
       [](Bench& b) {
         start(lane_outside_mask, 1, 32, 0, b.first, b.y);
         return std::vector<float>{};
       }},
      {"deadlock", "a barrier of the warp and one of the block wait for each other",
       [](Bench& b) {
         start(deadlock, 1, 32, 0, b.first, b.y);
         return std::vector<float>(32, 1.0f);
       }},
  };
}

}  // namespace gs::cuda_emulation
