#pragma once

#include <string>
#include <vector>

#include "framework/backend/backend.h"
#include "framework/core/dtype.h"

namespace gs::backend {

// Sizes of C = alpha op(A) op(B) + beta C: op(A) is (m, k), op(B) is (k, n), C is (m, n), all
// row-major; a transposed operand is stored as (k, m) or (n, k). A leading dimension is the
// distance of rows in memory. With beta = 0 C is written, never read. Sizes may be 0.
struct GemmSizes {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  int64_t a_stride, b_stride, c_stride;  // leading dimensions
  double alpha = 1, beta = 0;
};

void gemm(Cpu, const GemmSizes& sizes, const float* a, const float* b, float* c);
void gemm(Cuda, const GemmSizes& sizes, const float* a, const float* b, float* c);
void gemm(Cpu, const GemmSizes& sizes, const double* a, const double* b, double* c);
void gemm(Cuda, const GemmSizes& sizes, const double* a, const double* b, double* c);
// bfloat16 is multiplied exactly and summed in float32, rounded once at the end.
void gemm(Cuda, const GemmSizes& sizes, const BFloat16* a, const BFloat16* b, BFloat16* c);
void gemm(Cuda, const GemmSizes& sizes, const BFloat16* a, const BFloat16* b, float* c);

// Opens the library that multiplies this type: after it no call of gemm fails for want of it, as it
// must not in the body of a parallel_for.
void prepare_gemm(Cpu, DType dtype);

// `count` products; matrix i of an operand starts at its offset i, counted in elements.
struct GemmBatch {
  int64_t count = 1;
  std::vector<int64_t> a, b, c;
};
void gemm_batch(Cpu, const GemmSizes& sizes, const GemmBatch& batch, const float* a, const float* b,
                float* c);
void gemm_batch(Cuda, const GemmSizes& sizes, const GemmBatch& batch, const float* a,
                const float* b, float* c);
void gemm_batch(Cpu, const GemmSizes& sizes, const GemmBatch& batch, const double* a,
                const double* b, double* c);
void gemm_batch(Cuda, const GemmSizes& sizes, const GemmBatch& batch, const double* a,
                const double* b, double* c);
void gemm_batch(Cuda, const GemmSizes& sizes, const GemmBatch& batch, const BFloat16* a,
                const BFloat16* b, BFloat16* c);
void gemm_batch(Cuda, const GemmSizes& sizes, const GemmBatch& batch, const BFloat16* a,
                const BFloat16* b, float* c);

// The libraries found at run time that compute float32 products, the one in use first:
// "oneDNN", "OpenBLAS (SkylakeX)". float64 always goes through OpenBLAS.
std::vector<std::string> gemm_libraries();

// Chooses the library of float32 products, "openblas" or "onednn"; one that is not there is
// refused. GRADSTONE_GEMM chooses it for a whole process; the default is oneDNN where it is found.
void use_gemm_library(const std::string& name);

// Whether float32 products on CUDA devices may round their operands to TF32 (10 bits of mantissa),
// which is several times as fast. Off at the start; for the whole process.
void use_tf32(bool use);
bool uses_tf32();

// Whether a CUDA device times several algorithms at the first product of each shape and keeps the
// fastest. Off at the start: timings differ from run to run, and results then do in their last
// bits.
void time_gemm_algorithms(bool time);
bool times_gemm_algorithms();

}  // namespace gs::backend
