// cuBLASLt's matrix product, with bias and ReLU.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulation/matrix.h"
#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

struct cublasLtContext {};

namespace gs::cuda_emulation {
namespace {

struct Layout {
  Matrix matrix;
  int32_t batch_count = 1;
  int64_t batch_stride = 0;
};
struct Description {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;  // of D's type, an element a row
};

// What an algorithm asks of its callers: so much workspace, matrices aligned so. It is what
// cublasLtMatmulAlgo_t holds here.
struct Algorithm {
  uint64_t workspace_bytes = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of A, B, C, D
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

Layout& layout_of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<Layout*>(layout); }
Description& description_of(cublasLtMatmulDesc_t description) {
  return *reinterpret_cast<Description*>(description);
}

template <typename T>
cublasStatus_t take(T& value, const void* from, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t refuse_attribute(int attribute) {
  explain(cudaErrorInvalidValue, "cublasLt: attribute %d is not emulated", attribute);
  return CUBLAS_STATUS_INVALID_VALUE;
}

struct Matmul {
  Description description;
  Layout a, b, c, d;

  Product product() const {
    Product product;
    product.transpose_a = description.op_a != CUBLAS_OP_N;
    product.transpose_b = description.op_b != CUBLAS_OP_N;
    product.a = a.matrix;
    product.b = b.matrix;
    product.c = c.matrix;
    product.d = d.matrix;
    return product;
  }
};

// Null where the sizes fit, else what is wrong.
const char* wrong_sizes(const Matmul& matmul) {
  const Product product = matmul.product();
  const Matrix &a = product.a, &b = product.b;
  if (!a.valid() || !b.valid() || !product.c.valid() || !product.d.valid())
    return "a leading dimension is smaller than the rows";
  if ((product.transpose_a ? a.columns : a.rows) != product.m() ||
      (product.transpose_b ? b.rows : b.columns) != product.n() ||
      (product.transpose_b ? b.columns : b.rows) != product.k())
    return "the sizes of A, B and D do not match";
  if (product.c.rows != product.m() || product.c.columns != product.n())
    return "C and D have different sizes";
  for (const Layout* each : {&matmul.a, &matmul.b, &matmul.c}) {
    if (each->batch_count != matmul.d.batch_count) return "batch counts differ";
  }
  return nullptr;
}

// The combinations of types in the table of cublasLtMatmul() that are emulated: all float32, all
// float64, and A and B in bfloat16 with C and D in bfloat16 or float32.
bool types_supported(const Matmul& matmul) {
  const Description& description = matmul.description;
  const cudaDataType a = matmul.a.matrix.type, d = matmul.d.matrix.type;
  if (a != matmul.b.matrix.type || d != matmul.c.matrix.type) return false;
  if (a == CUDA_R_64F)
    return d == a && description.scale == CUDA_R_64F &&
           (description.compute == CUBLAS_COMPUTE_64F ||
            description.compute == CUBLAS_COMPUTE_64F_PEDANTIC);
  const bool single = description.compute == CUBLAS_COMPUTE_32F ||
                      description.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                      (a == CUDA_R_32F && description.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
  return single && description.scale == CUDA_R_32F && element_bytes(a) != 0 &&
         (d == a || d == CUDA_R_32F);
}

bool adds_bias(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}
bool rectifies(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}
bool emulated(cublasLtEpilogue_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DEFAULT || adds_bias(epilogue) || rectifies(epilogue);
}

cublasStatus_t examine(const Matmul& matmul) {
  if (const char* const wrong = wrong_sizes(matmul)) {
    const Product product = matmul.product();
    explain(cudaErrorInvalidValue, "cublasLt: %s, got A %ld x %ld%s, B %ld x %ld%s, D %ld x %ld",
            wrong, product.a.rows, product.a.columns, product.transpose_a ? "^T" : "",
            product.b.rows, product.b.columns, product.transpose_b ? "^T" : "", product.m(),
            product.n());
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (!types_supported(matmul)) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasLtEpilogue_t epilogue = matmul.description.epilogue;
  if (!emulated(epilogue) || (adds_bias(epilogue) && matmul.description.bias == nullptr)) {
    explain(cudaErrorInvalidValue, "cublasLt: epilogue %d is not emulated, or lacks its bias",
            static_cast<int>(epilogue));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  // cuBLASLt has no epilogues in float64, and this option takes away the others.
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT &&
      (matmul.a.matrix.type == CUDA_R_64F || options().refuse_epilogues))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return CUBLAS_STATUS_SUCCESS;
}

// Stops the program where the hardware would read beyond memory or at addresses that the algorithm
// cannot.
void check_places(const Matmul& matmul, bool reads_c) {
  for (const Layout* each : {&matmul.a, &matmul.b, &matmul.c, &matmul.d}) {
    if (each == &matmul.c && !reads_c) continue;
    for (int32_t i : {0, each->batch_count - 1})
      each->matrix.from(each->batch_stride * i).check_place("cublasLtMatmul");
  }
  if (adds_bias(matmul.description.epilogue))
    check_device_range(
        matmul.description.bias,
        static_cast<size_t>(matmul.d.matrix.rows) * element_bytes(matmul.d.matrix.type),
        "cublasLtMatmul's bias");
}

void check_algorithm(const Algorithm& algorithm, const Matmul& matmul, size_t workspace_bytes) {
  if (workspace_bytes < algorithm.workspace_bytes)
    stop("workspace", "cublasLtMatmul: the algorithm needs %zu bytes, got %zu",
         static_cast<size_t>(algorithm.workspace_bytes), workspace_bytes);
  const Layout* const layouts[] = {&matmul.a, &matmul.b, &matmul.c, &matmul.d};
  for (int i = 0; i < 4; ++i) {
    const Matrix& first = layouts[i]->matrix;
    for (const Matrix& matrix : {first, first.from(layouts[i]->batch_stride)}) {
      if (reinterpret_cast<uintptr_t>(matrix.data) % algorithm.alignments[i] == 0) continue;
      stop("alignment", "cublasLtMatmul: %p is not aligned to the %u bytes of the preference",
           matrix.data, algorithm.alignments[i]);
    }
  }
}

void run(const Matmul& matmul, double alpha, double beta) {
  Product product = matmul.product();
  product.alpha = alpha;
  product.beta = beta;
  const Description& description = matmul.description;
  product.finish = [&](int64_t row, double value) {
    if (adds_bias(description.epilogue)) value += element(description.bias, product.d.type, row);
    return rectifies(description.epilogue) && value <= 0 ? 0 : value;  // NaN stays
  };
  const Product first = product;
  for (int32_t i = 0; i < matmul.d.batch_count; ++i) {
    product.a = first.a.from(matmul.a.batch_stride * i);
    product.b = first.b.from(matmul.b.batch_stride * i);
    product.c = first.c.from(matmul.c.batch_stride * i);
    product.d = first.d.from(matmul.d.batch_stride * i);
    multiply(product);
  }
}

}  // namespace
}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
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

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute, cudaDataType scale) {
  *description =
      reinterpret_cast<cublasLtMatmulDesc_t>(new Description{.compute = compute, .scale = scale});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete &description_of(description);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t which,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Description& description = description_of(which);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(description.op_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(description.op_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(description.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(description.bias, value, bytes);
    default:
      return refuse_attribute(attribute);
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t stride) {
  if (element_bytes(type) == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  auto* const made = new Layout;
  made->matrix = {nullptr, type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), stride};
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &layout_of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t which,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  Layout& layout = layout_of(which);
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return take(layout.batch_count, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return take(layout.batch_stride, value, bytes);
    default:
      return refuse_attribute(attribute);
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Algorithm);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Algorithm*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  Algorithm& allowed = *reinterpret_cast<Algorithm*>(preference);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return take(allowed.workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return take(allowed.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return take(allowed.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return take(allowed.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return take(allowed.alignments[3], value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return CUBLAS_STATUS_SUCCESS;  // sums are not split here
    default:
      return refuse_attribute(attribute);
  }
}

// Three algorithms that do the same, so that callers may choose.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* count) {
  *count = 0;
  const cublasStatus_t status = examine(
      {description_of(description), layout_of(a), layout_of(b), layout_of(c), layout_of(d)});
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  Algorithm algorithm = *reinterpret_cast<Algorithm*>(preference);
  const uint64_t most_bytes = algorithm.workspace_bytes;
  for (; *count < std::min(wanted, 3); ++*count) {
    cublasLtMatmulHeuristicResult_t& result = results[*count];
    result = {};
    algorithm.workspace_bytes = std::min(most_bytes, static_cast<uint64_t>(*count) * 256);
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = algorithm.workspace_bytes;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                              cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                              cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const Lock lock;
  Matmul matmul = {description_of(description), layout_of(layout_a), layout_of(layout_b),
                   layout_of(layout_c), layout_of(layout_d)};
  if (const cublasStatus_t status = examine(matmul)) return status;
  matmul.a.matrix.data = const_cast<void*>(a);
  matmul.b.matrix.data = const_cast<void*>(b);
  matmul.c.matrix.data = const_cast<void*>(c);
  matmul.d.matrix.data = d;
  const cudaDataType scale = matmul.description.scale;
  const double alpha_value = element(alpha, scale, 0), beta_value = element(beta, scale, 0);
  check_places(matmul, beta_value != 0);
  check_device_range(workspace, workspace_bytes, "cublasLtMatmul's workspace");
  if (algo != nullptr) {  // without one the library finds one for these very pointers
    Algorithm algorithm;
    std::memcpy(static_cast<void*>(&algorithm), algo, sizeof algorithm);
    check_algorithm(algorithm, matmul, workspace_bytes);
  }
  const cudaError_t status = enqueue(stream, [=] { run(matmul, alpha_value, beta_value); });
  return status == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
