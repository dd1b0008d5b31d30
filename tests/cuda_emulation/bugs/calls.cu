// Bugs in launches and in calls of the libraries.
#include <cublasLt.h>
#include <cublas_v2.h>

#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

constexpr int kWidth = Bench::kWidth;

__global__ void fill_row(float* y, float value) { y[threadIdx.x] = value; }
__global__ void __launch_bounds__(64) fill_bounded(float* y, float value) {
  y[threadIdx.x] = value;
}

// y = x x for matrices of 8 rows and columns.
std::vector<float> multiply(const float* a, int stride, float* c) {
  cublasHandle_t handle = nullptr;
  const float one = 1, zero = 0;
  cublasCreate(&handle);
  const cublasStatus_t status =
      cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, a, stride, a, 8, &zero, c, 8);
  cublasDestroy(handle);
  check(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm: error {}", static_cast<int>(status));
  return {};
}

// A product whose ReLU leaves its bits in a matrix of 8 rows, where cublasLt wants a multiple of
// 128.
std::vector<float> multiply_with_short_mask(Bench& b) {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  cublasLtHandle_t handle = nullptr;
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_AUX;
  const int64_t stride = 8;
  void* const mask = b.x + 64;
  const float one = 1, zero = 0;
  cublasLtCreate(&handle);
  cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, mask);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride);
  cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8);
  const cublasStatus_t status =
      cublasLtMatmul(handle, description, &one, b.x, layout, b.x, layout, &zero, b.y, layout, b.y,
                     layout, nullptr, nullptr, 0, b.first);
  cublasLtMatrixLayoutDestroy(layout);
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
       [](Bench& b) { return multiply(b.x, 4, b.y); }},
      {"host_pointer_to_library", "a matrix product of the host's memory",
       [](Bench& b) { return multiply(b.host_x.data(), 8, b.y); }},
      {"library_beyond_memory", "a matrix product that reaches beyond an allocation",
       [](Bench& b) { return multiply(b.x, 128, b.y); }},
      {"short_mask_stride", "an epilogue's mask with a stride that cublasLt.h forbids",
       [](Bench& b) { return multiply_with_short_mask(b); }},
  };
}

}  // namespace gs::cuda_emulation
