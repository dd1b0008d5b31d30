// Bugs in the use of device memory.
#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

constexpr int kWidth = Bench::kWidth;

__global__ void fill_too_far(float* y, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i <= count) y[i] = 1;
}

__global__ void add_without_atomic(float* y) {
  if (threadIdx.x == 0) *y += 1;
}

__global__ void misaligned(const float* x, float* y) {
  const float4 four = *reinterpret_cast<const float4*>(x + 1);
  y[0] = four.x + four.y + four.z + four.w;
}

__global__ void copy_row(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

}  // namespace

std::vector<Bug> global_memory_bugs() {
  return {
      {"beyond_global", "access beyond an allocation",
       [](Bench& b) {
         start(fill_too_far, 2, kWidth, 0, b.first, b.y, kWidth);
         return std::vector<float>(kWidth, 1.0f);
       }},
      {"race_of_blocks", "two blocks add to one place without an atomic",
       [](Bench& b) {
         start(add_without_atomic, 64, 32, 0, b.first, b.y);
         return std::vector<float>{64};
       }},
      {"misaligned", "a 16-byte load from an address that is no multiple of 16",
       [](Bench& b) {
         start(misaligned, 1, 1, 0, b.first, b.x, b.y);
         return std::vector<float>{10};
       }},
      {"unwritten_global", "device memory read but never written",
       [](Bench& b) {
         float* fresh = nullptr;
         check_call(cudaMalloc(&fresh, kWidth * sizeof(float)), "cudaMalloc");
         start(copy_row, 1, kWidth, 0, b.first, fresh, b.y);
         check_call(cudaFree(fresh), "cudaFree");
         return std::vector<float>(kWidth, 0.0f);
       }},
      {"host_pointer", "a kernel gets a pointer to the host's memory",
       [](Bench& b) {
         start(copy_row, 1, kWidth, 0, b.first, b.host_x.data(), b.y);
         return std::vector<float>(b.host_x.begin(), b.host_x.begin() + kWidth);
       }},
      {"host_writes", "the host writes to device memory",
       [](Bench& b) {
         b.y[0] = 1;
         return std::vector<float>{};
       }},
      {"freed_argument", "a kernel gets a pointer to freed memory",
       [](Bench& b) {
         float* freed = nullptr;
         check_call(cudaMalloc(&freed, kWidth * sizeof(float)), "cudaMalloc");
         check_call(cudaFree(freed), "cudaFree");
         start(copy_row, 1, kWidth, 0, b.first, freed, b.y);
         return std::vector<float>{};
       }},
      {"freed_twice", "memory is freed twice",
       [](Bench& b) {
         float* freed = nullptr;
         check_call(cudaMalloc(&freed, kWidth * sizeof(float)), "cudaMalloc");
         check_call(cudaFreeAsync(freed, b.first), "cudaFreeAsync");
         check_call(cudaFreeAsync(freed, b.first), "cudaFreeAsync");
         return std::vector<float>{};
       }},
      {"leak", "memory is never freed",
       [](Bench&) {
         float* lost = nullptr;
         check_call(cudaMalloc(&lost, 4), "cudaMalloc");
         return std::vector<float>{};
       }},
  };
}

}  // namespace gs::cuda_emulation
