// The instructions of mma.cuh against plain products.
#include "framework/backend/cuda/mma.cuh"

#include <gtest/gtest.h>

#include "tests/cuda_emulation/tests/device.h"

namespace gs::cuda_emulation {
namespace {

using backend::commit_copies;
using backend::copy_async_16;
using backend::load_matrices;
using backend::load_matrices_transposed;
using backend::mma_bf16;

// D = A B with A (16, 16) row-major, and B (16, 8) row-major or, transposed, (8, 16) row-major.
template <bool b_transposed>
__global__ void multiply_tile(const __nv_bfloat16* a, const __nv_bfloat16* b, float* d) {
  __shared__ __align__(16) __nv_bfloat16 a_tile[16 * 16], b_tile[16 * 8];
  const unsigned lane = threadIdx.x;
  copy_async_16(a_tile + lane * 8, a + lane * 8);
  if (lane < 16) copy_async_16(b_tile + lane * 8, b + lane * 8);
  commit_copies();
  backend::wait_for_copies<0>();
  __syncwarp();
  uint32_t a_parts[4], b_parts[4];  // B twice
  // Matrices of A: rows 0-7, rows 8-15, then the same of columns 8-15.
  load_matrices(a_parts, a_tile + lane % 16 * 16 + lane / 16 * 8);
  if (b_transposed) {
    load_matrices(b_parts, b_tile + lane % 8 * 16 + lane / 8 % 2 * 8);
  } else {
    load_matrices_transposed(b_parts, b_tile + lane % 16 * 8);
  }
  float sums[4] = {1, 1, 1, 1};
  mma_bf16(sums, a_parts, {b_parts[0], b_parts[1]}, sums);
  for (unsigned i = 0; i < 4; ++i) d[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sums[i];
}

template <bool b_transposed>
void check_tile() {
  // Whole numbers, so that the products are exact.
  const auto a_at = [](int row, int k) { return static_cast<float>((row * 7 + k * 3) % 11 - 5); };
  const auto b_at = [](int k, int column) {
    return static_cast<float>((k * 5 + column * 2) % 13 - 6);
  };
  std::vector<__nv_bfloat16> a, b;
  for (int i = 0; i < 256; ++i) a.push_back(__float2bfloat16(a_at(i / 16, i % 16)));
  for (int i = 0; i < 128; ++i)
    b.push_back(__float2bfloat16(b_transposed ? b_at(i % 16, i / 16) : b_at(i / 8, i % 8)));
  const DeviceArray<__nv_bfloat16> device_a(a), device_b(b);
  const DeviceArray<float> d(128);
  start(multiply_tile<b_transposed>, 1, 32, 0, nullptr, device_a.data(), device_b.data(), d.data());
  std::vector<float> right;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += a_at(row, k) * b_at(k, column);
      right.push_back(sum);
    }
  }
  EXPECT_EQ(d.values(), right);
}

TEST(TensorCore, MultipliesRowsByRows) { check_tile<true>(); }
TEST(TensorCore, MultipliesRowsByColumns) { check_tile<false>(); }

__global__ void copy_some(const float* x, float* y, unsigned count) {
  __shared__ __align__(16) float values[128];
  copy_async_16(values + threadIdx.x * 4, x + threadIdx.x * 4, threadIdx.x < count);
  commit_copies();
  commit_copies();  // an empty group
  backend::wait_for_copies<1>();
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 128; i += 32) y[i] = values[i];
}

TEST(AsynchronousCopies, GiveZerosWhereNotValid) {
  std::vector<float> x(128, 3.0f);
  const DeviceArray<float> device_x(x), y(128);
  start(copy_some, 1, 32, 0, nullptr, device_x.data(), y.data(), 20u);
  std::fill(x.begin() + 80, x.end(), 0.0f);
  EXPECT_EQ(y.values(), x);
}

}  // namespace
}  // namespace gs::cuda_emulation
