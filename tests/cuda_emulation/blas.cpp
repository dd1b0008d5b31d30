// The products of cuBLAS that a training framework needs, on the CPU's.
#include <algorithm>
#include <cstring>

#include "tests/cuda_emulation/matrix.h"
#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t mathematics = CUBLAS_DEFAULT_MATH;
};

namespace gs::cuda_emulation {
namespace {

struct Operand {
  const void* data;
  cudaDataType type;
  int64_t stride;
  int64_t batch_stride = 0;
};

struct Batch {
  int count = 1;
  bool pointers = false;  // operands are arrays, in device memory, of pointers to the matrices
};

struct Sizes {
  cublasOperation_t a, b;
  int m, n, k;
};

// What a scalar is given in: float64 for a product in float64, else float32.
double scalar(const void* place, cudaDataType type) {
  return element(place, type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F, 0);
}

Matrix matrix_of(const Operand& operand, int64_t rows, int64_t columns) {
  return {const_cast<void*>(operand.data), operand.type, rows, columns, operand.stride};
}

// Matrix i of a batch; to be called when the work runs.
Matrix matrix_in_batch(const Matrix& first, const Operand& operand, const Batch& batch, int i) {
  if (!batch.pointers) return first.from(operand.batch_stride * i);
  Matrix result = first;
  result.data = static_cast<void* const*>(operand.data)[i];
  return result;
}

bool valid(const Product& product, const Batch& batch) {
  return product.a.valid() && product.b.valid() && product.d.valid() && batch.count >= 0 &&
         element_bytes(product.a.type) != 0 && product.a.type == product.b.type &&
         element_bytes(product.d.type) != 0 &&
         (product.a.type == CUDA_R_64F) == (product.d.type == CUDA_R_64F);
}

cublasStatus_t enqueue_product(cublasHandle_t handle, const Sizes& sizes, const void* alpha,
                               const Operand& a, const Operand& b, const void* beta,
                               const Operand& c, Batch batch = {}) {
  const Lock lock;
  Product product;
  product.transpose_a = sizes.a != CUBLAS_OP_N;
  product.transpose_b = sizes.b != CUBLAS_OP_N;
  product.a = product.transpose_a ? matrix_of(a, sizes.k, sizes.m) : matrix_of(a, sizes.m, sizes.k);
  product.b = product.transpose_b ? matrix_of(b, sizes.n, sizes.k) : matrix_of(b, sizes.k, sizes.n);
  product.c = product.d = matrix_of(c, sizes.m, sizes.n);
  if (!valid(product, batch)) {
    explain(cudaErrorInvalidValue,
            "cublas: m %d, n %d, k %d, leading dimensions %ld, %ld, %ld, types %d, %d, %d", sizes.m,
            sizes.n, sizes.k, a.stride, b.stride, c.stride, a.type, b.type, c.type);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (batch.pointers) {
    for (const void* each : {a.data, b.data, c.data})
      check_device_range(each, static_cast<size_t>(batch.count) * sizeof(void*), "cublas");
  } else {
    for (int i : {0, std::max(batch.count - 1, 0)}) {
      matrix_in_batch(product.a, a, batch, i).check_place("cublas");
      matrix_in_batch(product.b, b, batch, i).check_place("cublas");
      matrix_in_batch(product.d, c, batch, i).check_place("cublas");
    }
  }
  const bool device_scalars = handle->pointers == CUBLAS_POINTER_MODE_DEVICE;
  if (!device_scalars) {
    product.alpha = scalar(alpha, a.type);
    product.beta = scalar(beta, a.type);
  }
  const cudaError_t status = enqueue(handle->stream, WorkKind::kLibrary, [=] {
    Product each = product;
    if (device_scalars) {
      each.alpha = scalar(alpha, a.type);
      each.beta = scalar(beta, a.type);
    }
    for (int i = 0; i < batch.count; ++i) {
      each.a = matrix_in_batch(product.a, a, batch, i);
      each.b = matrix_in_batch(product.b, b, batch, i);
      each.c = each.d = matrix_in_batch(product.d, c, batch, i);
      for (const Matrix& matrix : {each.a, each.b, each.d}) matrix.check_place("cublas");
      multiply(each);
    }
  });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->pointers = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  handle->mathematics = mode;  // without effect: TF32 is not emulated
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  *mode = handle->mathematics;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void* workspace, size_t bytes) {
  check_device_range(workspace, bytes, "cublasSetWorkspace");
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    default:
      return "the function failed to launch on the GPU";
  }
}
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusString(status); }
const char* cublasGetStatusName(cublasStatus_t status) { return cublasGetStatusString(status); }

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const float* alpha, const float* a, int lda,
                              const float* b, int ldb, const float* beta, float* c, int ldc) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_32F, lda},
                         {b, CUDA_R_32F, ldb}, beta, {c, CUDA_R_32F, ldc});
}
cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              int m, int n, int k, const double* alpha, const double* a, int lda,
                              const double* b, int ldb, const double* beta, double* c, int ldc) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_64F, lda},
                         {b, CUDA_R_64F, ldb}, beta, {c, CUDA_R_64F, ldc});
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int count) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_32F, lda, stride_a},
                         {b, CUDA_R_32F, ldb, stride_b}, beta, {c, CUDA_R_32F, ldc, stride_c},
                         {count, false});
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                         cublasOperation_t op_b, int m, int n, int k,
                                         const double* alpha, const double* a, int lda,
                                         long long stride_a, const double* b, int ldb,
                                         long long stride_b, const double* beta, double* c, int ldc,
                                         long long stride_c, int count) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_64F, lda, stride_a},
                         {b, CUDA_R_64F, ldb, stride_b}, beta, {c, CUDA_R_64F, ldc, stride_c},
                         {count, false});
}
cublasStatus_t cublasSgemmBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                  cublasOperation_t op_b, int m, int n, int k, const float* alpha,
                                  const float* const a[], int lda, const float* const b[], int ldb,
                                  const float* beta, float* const c[], int ldc, int count) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_32F, lda},
                         {b, CUDA_R_32F, ldb}, beta, {c, CUDA_R_32F, ldc}, {count, true});
}
cublasStatus_t cublasDgemmBatched(cublasHandle_t handle, cublasOperation_t op_a,
                                  cublasOperation_t op_b, int m, int n, int k, const double* alpha,
                                  const double* const a[], int lda, const double* const b[],
                                  int ldb, const double* beta, double* const c[], int ldc,
                                  int count) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, CUDA_R_64F, lda},
                         {b, CUDA_R_64F, ldb}, beta, {c, CUDA_R_64F, ldc}, {count, true});
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType type_a, int lda, const void* b, cudaDataType type_b,
                            int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, type_a, lda}, {b, type_b, ldb},
                         beta, {c, type_c, ldc});
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                          cublasOperation_t op_b, int m, int n, int k,
                                          const void* alpha, const void* a, cudaDataType type_a,
                                          int lda, long long stride_a, const void* b,
                                          cudaDataType type_b, int ldb, long long stride_b,
                                          const void* beta, void* c, cudaDataType type_c, int ldc,
                                          long long stride_c, int count, cublasComputeType_t,
                                          cublasGemmAlgo_t) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, type_a, lda, stride_a},
                         {b, type_b, ldb, stride_b}, beta, {c, type_c, ldc, stride_c},
                         {count, false});
}
cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a,
                                   cublasOperation_t op_b, int m, int n, int k, const void* alpha,
                                   const void* const a[], cudaDataType type_a, int lda,
                                   const void* const b[], cudaDataType type_b, int ldb,
                                   const void* beta, void* const c[], cudaDataType type_c, int ldc,
                                   int count, cublasComputeType_t, cublasGemmAlgo_t) {
  return enqueue_product(handle, {op_a, op_b, m, n, k}, alpha, {a, type_a, lda}, {b, type_b, ldb},
                         beta, {c, type_c, ldc}, {count, true});
}
}
