#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "framework/backend/cuda/launch.h"

// Tensor-core products and asynchronous copies, one PTX instruction a function. All 32 lanes of a
// warp call the first three together.
//   mma_bf16(d, a, b, c): D = A B + C with A (16, 16) and B (16, 8) of bfloat16 and C, D (16, 8) of
//     float32, spread over the lanes as mma.m16n8k16 has them: with g = lane / 4, t = lane % 4,
//     a[i] holds A[g + 8 (i % 2)][2 t + 8 (i / 2)] and its right neighbour, b[i] holds
//     B[2 t + 8 i][g] and its lower neighbour, c[i] is C[g + 8 (i / 2)][2 t + i % 2].
//   load_matrices(r, row): four matrices (8, 8) of 16-bit values from shared memory; lane 8 i + j
//     gives the address of row j of matrix i, aligned to 16 bytes. r[i] gets M_i[g][2 t] and
//     M_i[g][2 t + 1], as mma_bf16 takes A and transposed B.
//   load_matrices_transposed: r[i] gets M_i[2 t][g] and M_i[2 t + 1][g].
//   copy_async_16(to, from, valid): 16 bytes from global to shared memory, both aligned to 16, or
//     zeros where not valid. commit_copies() closes a group; wait_for_copies<n>() waits for all
//     groups of this thread but the last n. Then a barrier lets the others see them.
// The emulation defines the same functions.
#ifndef GS_CUDA_EMULATION
namespace gs::backend {

__device__ inline void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                const float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}

__device__ inline uint32_t shared_address(const void* place) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}

__device__ inline void load_matrices(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ inline void copy_async_16(void* to, const void* from, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(valid ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

}  // namespace gs::backend
#endif
