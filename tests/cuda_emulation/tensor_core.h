// The functions of framework/backend/cuda/mma.cuh, which says what they do, on the CPU. Register
// layouts are those of the PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tests/cuda_emulation/collectives.h"

namespace gs::cuda_emulation {

// An asynchronous copy to shared memory: its destination holds NaN from the start of the copy to
// the wait for it; source bytes beyond `source_bytes` count as 0.
void start_copy(void* to, const void* from, size_t bytes, size_t source_bytes, Place place);
void commit_copies();
void wait_for_copies(int pending);

}  // namespace gs::cuda_emulation

namespace gs::backend {

inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                     const float (&c)[4], cuda_emulation::Place place = cuda_emulation::here()) {
  const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  uint32_t all[32][6];
  cuda_emulation::warp_gather(0xffffffffu, mine, sizeof mine, all, place);
  const auto half = [](uint32_t word, unsigned high) {
    return std::bit_cast<float>((high != 0 ? word >> 16 : word & 0xffffu) << 16);
  };
  // Lane = 4 group + t. a: register 2 (k >= 8) + (row >= 8), row % 8 = group, k % 8 = 2 t + half.
  const auto a_at = [&](unsigned row, unsigned k) {
    return half(all[row % 8 * 4 + k % 8 / 2][k / 8 * 2 + row / 8], k % 2);
  };
  // b: register k >= 8, k % 8 = 2 t + half, column = group.
  const auto b_at = [&](unsigned k, unsigned column) {
    return half(all[column * 4 + k % 8 / 2][4 + k / 8], k % 2);
  };
  // c and d: row = group + 8 (i >= 2), column = 2 t + i % 2.
  const unsigned lane = cuda_emulation::lane();
  float result[4];
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    result[i] = c[i];
    for (unsigned k = 0; k < 16; ++k) result[i] += a_at(row, k) * b_at(k, column);
  }
  for (unsigned i = 0; i < 4; ++i) d[i] = result[i];
}

// Rows are aligned to 16 bytes, as on the hardware: UndefinedBehaviorSanitizer sees others.
template <int count>
void load_matrices(uint32_t (&r)[count], const void* row,
                   cuda_emulation::Place place = cuda_emulation::here()) {
  struct alignas(16) Row {
    uint32_t words[4];
  };
  const Row* rows[32];
  cuda_emulation::warp_gather(0xffffffffu, &row, sizeof row, rows, place);
  const unsigned lane = cuda_emulation::lane();
  for (unsigned i = 0; i < count; ++i) r[i] = rows[i * 8 + lane / 4]->words[lane % 4];
}

template <int count>
void load_matrices_transposed(uint32_t (&r)[count], const void* row,
                              cuda_emulation::Place place = cuda_emulation::here()) {
  struct alignas(16) Row {
    uint16_t halves[8];
  };
  const Row* rows[32];
  cuda_emulation::warp_gather(0xffffffffu, &row, sizeof row, rows, place);
  const unsigned lane = cuda_emulation::lane(), column = lane / 4, first = lane % 4 * 2;
  for (unsigned i = 0; i < count; ++i) {
    r[i] = rows[i * 8 + first]->halves[column] | uint32_t{rows[i * 8 + first + 1]->halves[column]}
                                                     << 16;
  }
}

inline void copy_async_16(void* to, const void* from, bool valid = true,
                          cuda_emulation::Place place = cuda_emulation::here()) {
  cuda_emulation::start_copy(to, from, 16, valid ? 16 : 0, place);
}
inline void commit_copies() { cuda_emulation::commit_copies(); }
template <int pending>
void wait_for_copies() {
  cuda_emulation::wait_for_copies(pending);
}

}  // namespace gs::backend
