// What kernels see: coordinates, barriers, warp collectives, atomics, shared memory.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/cuda_emulation/tests/device.h"

namespace gs::cuda_emulation {
namespace {

using Ints = std::vector<int>;
constexpr unsigned kAll = 0xffffffffu;

__global__ void number_threads(int* y) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      static_cast<int>(block * 1000 + thread);
}

TEST(Kernels, HaveCoordinatesInThreeDimensions) {
  const DeviceArray<int> y(2 * 3 * 2 * 5 * 4 * 3);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(2, 3, 2);
  config.blockDim = dim3(5, 4, 3);
  check_call(launch_kernel(&config, number_threads, y.data()), "launch");
  Ints right;
  for (int block = 0; block < 12; ++block) {
    for (int thread = 0; thread < 60; ++thread) right.push_back(block * 1000 + thread);
  }
  EXPECT_EQ(y.values(), right);
}

__global__ void shuffles(int* y) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int value = lane * lane;
  int* const mine = y + threadIdx.x * 6;
  mine[0] = __shfl_sync(kAll, value, 35);  // lane 3
  mine[1] = __shfl_up_sync(kAll, value, 3);
  mine[2] = __shfl_down_sync(kAll, value, 3);
  mine[3] = __shfl_xor_sync(kAll, value, 5);
  mine[4] = __shfl_sync(kAll, value, 1, 8);
  mine[5] = static_cast<int>(__shfl_xor_sync(kAll, static_cast<double>(value), 16));
}

TEST(Kernels, ShuffleWithinWarps) {
  const DeviceArray<int> y(64 * 6);
  start(shuffles, 1, 64, 0, nullptr, y.data());
  Ints right;
  const auto square = [](int lane) { return lane * lane; };
  for (int thread = 0; thread < 64; ++thread) {
    const int lane = thread % 32;
    for (int source : {3, lane < 3 ? lane : lane - 3, lane > 28 ? lane : lane + 3, lane ^ 5,
                       lane / 8 * 8 + 1, lane ^ 16})
      right.push_back(square(source));
  }
  EXPECT_EQ(y.values(), right);
}

__global__ void votes(unsigned* y) {
  const unsigned i = threadIdx.x;
  unsigned* const mine = y + i * 5;
  mine[0] = __ballot_sync(kAll, i % 3 == 0);
  mine[1] = static_cast<unsigned>(__any_sync(kAll, i == 40));
  mine[2] = static_cast<unsigned>(__syncthreads_or(i == 63));
  mine[3] = static_cast<unsigned>(__syncthreads_or(i > 63));
  // The halves of a warp on their own.
  const unsigned half = i % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
  mine[4] = __match_any_sync(half, i % 4 == 0 ? 7 : 8);
}

TEST(Kernels, Vote) {
  const DeviceArray<unsigned> y(64 * 5);
  start(votes, 1, 64, 0, nullptr, y.data());
  const std::vector<unsigned> got = y.values();
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned warp = i / 32, half = i % 32 < 16 ? 0x0000ffffu : 0xffff0000u;
    const unsigned fourths = i % 4 == 0 ? 0x11111111u : 0xeeeeeeeeu;
    const std::vector<unsigned> right = {warp == 0 ? 0x49249249u : 0x92492492u, warp, 1, 0,
                                         half & fourths};
    EXPECT_EQ(std::vector<unsigned>(got.begin() + i * 5, got.begin() + i * 5 + 5), right) << i;
  }
}

// A sum of a block of any size by shuffles and shared memory.
__global__ void sum_block(const int* x, int* y, int count) {
  GS_DYNAMIC_SHARED(int, sums);
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    sum += x[i];
  sums[threadIdx.x] = sum;
  for (unsigned width = blockDim.x; width > 1; width = (width + 1) / 2) {
    __syncthreads();
    const bool adds = threadIdx.x < width / 2;
    const int other = adds ? sums[width - 1 - threadIdx.x] : 0;
    __syncthreads();
    if (adds) sums[threadIdx.x] += other;
  }
  if (threadIdx.x == 0) *y = sums[0];
}

TEST(Kernels, MeetAtBarriersInBlocksOfAnySize) {
  Ints x(1000);
  std::iota(x.begin(), x.end(), 1);
  const DeviceArray<int> device_x(x), y(1);
  for (unsigned threads : {1u, 2u, 31u, 32u, 33u, 255u, 257u, 1023u, 1024u}) {
    start(sum_block, 1, threads, threads * sizeof(int), nullptr, device_x.data(), y.data(), 1000);
    EXPECT_EQ(y.values(), Ints{500500}) << threads;
  }
}

__global__ void update_atomically(int* counters, double* sum) {
  atomicAdd(counters, 1);
  atomicMin(counters + 1, -static_cast<int>(threadIdx.x));
  atomicAdd(sum, 0.5);
}

TEST(Kernels, UpdateAtomically) {
  const DeviceArray<int> counters(Ints{0, 5});
  const DeviceArray<double> sum(std::vector<double>{1.0});
  start(update_atomically, 3, 50, 0, nullptr, counters.data(), sum.data());
  EXPECT_EQ(counters.values(), (Ints{150, -49}));
  EXPECT_EQ(sum.values(), std::vector<double>{76.0});
}

__global__ void fill_dynamic(int* y, int count) {
  GS_DYNAMIC_SHARED(int, values);
  values[count - 1] = 7;
  *y = values[count - 1];
}

TEST(Kernels, GetTheSharedMemoryThatTheyAskFor) {
  const DeviceArray<int> y(1);
  const auto ask_for = [](int bytes) {
    return cudaFuncSetAttribute(fill_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  check_call(ask_for(100000), "cudaFuncSetAttribute");
  start(fill_dynamic, 1, 1, 100000, nullptr, y.data(), 25000);
  EXPECT_EQ(y.values(), Ints{7});
  EXPECT_EQ(ask_for(232449), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace gs::cuda_emulation
