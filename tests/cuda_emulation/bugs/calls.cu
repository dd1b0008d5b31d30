// Bugs in launches and in calls of the runtime and of cuBLASLt.
#include <cublasLt.h>

#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

constexpr int kWidth = Bench::kWidth;

__global__ void fill_row(float* y, float value) { y[threadIdx.x] = value; }
__global__ void __launch_bounds__(64) fill_bounded(float* y, float value) {
  y[threadIdx.x] = value;
}

// A matrix `a` times x, of 8 rows and columns; with `chosen`, by an algorithm for matrices that are
// aligned to 256 bytes.
std::vector<float> multiply(Bench& b, const float* a, int64_t stride, bool chosen = false) {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout_a = nullptr, layout = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  const float one = 1, zero = 0;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_32F, 8, 8, stride);
  cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8);
  cublasLtMatmulPreferenceCreate(&preference);
  cublasLtMatmulAlgoGetHeuristic(handle, description, layout_a, layout, layout, layout, preference,
                                 1, &result, &count);
  const cublasStatus_t status =
      cublasLtMatmul(handle, description, &one, a, layout_a, b.x, layout, &zero, b.y, layout, b.y,
                     layout, chosen ? &result.algo : nullptr, nullptr, 0, b.first);
  cublasLtMatmulPreferenceDestroy(preference);
  for (cublasLtMatrixLayout_t each : {layout_a, layout}) cublasLtMatrixLayoutDestroy(each);
  cublasLtMatmulDescDestroy(description);
  cublasLtDestroy(handle);
  check(status == CUBLAS_STATUS_SUCCESS, "cublasLtMatmul: error {}", static_cast<int>(status));
  return {};
}

}  // namespace

std::vector<Bug> call_bugs() {
  return {
      {"empty_grid", "a grid without blocks",
       [](Bench& b) {
         start(fill_row, 0, kWidth, 0, b.first, b.y, 9.0f);
         return std::vector<float>{};
       }},
      {"too_many_threads", "more threads than a block may have",
       [](Bench& b) {
         start(fill_row, 1, 1025, 0, b.first, b.y, 9.0f);
         return std::vector<float>{};
       }},
      {"too_much_shared_memory", "more shared memory than the kernel asked for",
       [](Bench& b) {
         start(fill_row, 1, kWidth, 49 * 1024, b.first, b.y, 9.0f);
         return std::vector<float>(kWidth, 9.0f);
       }},
      {"beyond_launch_bounds", "more threads than __launch_bounds__",
       [](Bench& b) {
         start(fill_bounded, 1, kWidth, 0, b.first, b.y, 9.0f);
         return std::vector<float>(kWidth, 9.0f);
       }},
      {"wrong_copy_kind", "a copy whose kind does not fit its pointers",
       [](Bench& b) {
         check_call(cudaMemcpyAsync(b.y, b.host_x.data(), 4, cudaMemcpyDeviceToDevice, b.first),
                    "cudaMemcpyAsync");
         return std::vector<float>{};
       }},
      {"copy_too_long", "a copy longer than its destination",
       [](Bench& b) {
         check_call(cudaMemcpyAsync(b.y, b.x, 4 * (kWidth + 1), cudaMemcpyDeviceToDevice, b.first),
                    "cudaMemcpyAsync");
         return std::vector<float>{};
       }},
      {"short_leading_dimension", "a matrix product with a leading dimension below its rows",
       [](Bench& b) { return multiply(b, b.x, 4); }},
      {"host_pointer_to_library", "a matrix product of the host's memory",
       [](Bench& b) { return multiply(b, b.host_x.data(), 8); }},
      {"library_beyond_memory", "a matrix product that reaches beyond an allocation",
       [](Bench& b) { return multiply(b, b.x, 128); }},
      {"library_misaligned", "a matrix product by an algorithm for other alignments",
       [](Bench& b) { return multiply(b, b.x + 4, 8, true); }},
  };
}

}  // namespace gs::cuda_emulation
