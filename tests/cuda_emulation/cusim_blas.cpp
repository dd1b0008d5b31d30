// cuBLAS and cuBLASLt, as far as a training framework needs them, over OpenBLAS in fp32.
#include "cusim_internal.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "framework/backend/gemm.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};
struct cublasLtContext {};

namespace {
using cusim::report;

size_t size_of(cudaDataType t) {
  switch (t) {
    case CUDA_R_32F:
      return 4;
    case CUDA_R_16BF:
    case CUDA_R_16F:
      return 2;
    default:
      report("cublas", "data type %d isn't simulated", int(t));
      return 4;
  }
}
float get(const void* p, cudaDataType t, size_t i) {
  if (t == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
  if (t == CUDA_R_16F) return __half2float(static_cast<const __half*>(p)[i]);
  return static_cast<const float*>(p)[i];
}
void set(void* p, cudaDataType t, size_t i, float v) {
  if (t == CUDA_R_16BF)
    static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16(v);
  else if (t == CUDA_R_16F)
    static_cast<__half*>(p)[i] = __float2half(v);
  else
    static_cast<float*>(p)[i] = v;
}
// A column-major matrix as fp32, in place where it's that already.
const float* as_float(const void* p, cudaDataType t, int rows, int cols, int64_t ld,
                      std::vector<float>& tmp) {
  if (t == CUDA_R_32F) return static_cast<const float*>(p);
  tmp.assign(static_cast<size_t>(ld) * static_cast<size_t>(cols), 0.0f);
  for (int c = 0; c < cols; ++c) {
    for (int r = 0; r < rows; ++r) {
      size_t i = static_cast<size_t>(c) * static_cast<size_t>(ld) + static_cast<size_t>(r);
      tmp[i] = get(p, t, i);
    }
  }
  return tmp.data();
}
struct Mat {
  const void* p;
  cudaDataType t;
  int64_t ld;
  int64_t stride;
};
// D = alpha op(A) op(B) + beta C in fp32, handed to `finish` before the store.
template <class F>
void gemm(bool ta, bool tb, int m, int n, int k, float alpha, Mat a, Mat b, float beta, Mat c,
          Mat d, int batch, F finish) {
  std::vector<float> fa, fb, out(static_cast<size_t>(m) * static_cast<size_t>(n));
  for (int z = 0; z < batch; ++z) {
    auto at = [z](Mat x) {
      return static_cast<const char*>(x.p) + static_cast<size_t>(z * x.stride) * size_of(x.t);
    };
    const float* pa = as_float(at(a), a.t, ta ? k : m, ta ? m : k, a.ld, fa);
    const float* pb = as_float(at(b), b.t, tb ? n : k, tb ? k : n, b.ld, fb);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        out[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)] =
            beta == 0.0f ? 0.0f : get(at(c), c.t, static_cast<size_t>(j * c.ld + i));
      }
    }
    // Column-major is row-major of the transposed: D^T = op(B)^T op(A)^T.
    gs::backend::gemm(gs::Cpu{},
                      {.m = n,
                       .n = m,
                       .k = k,
                       .transpose_a = tb,
                       .transpose_b = ta,
                       .a_stride = b.ld,
                       .b_stride = a.ld,
                       .c_stride = m,
                       .alpha = alpha,
                       .beta = beta},
                      pb, pa, out.data());
    finish(z, out.data());
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        set(const_cast<char*>(at(d)), d.t, static_cast<size_t>(j * d.ld + i),
            out[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)]);
      }
    }
  }
}
cublasStatus_t queue_gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                          int n, int k, const float* alpha, Mat a, Mat b, const float* beta, Mat c,
                          int batch) {
  int rows_a = ta ? k : m, rows_b = tb ? n : k;
  if (m < 0 || n < 0 || k < 0 || a.ld < std::max(1, rows_a) || b.ld < std::max(1, rows_b) ||
      c.ld < std::max(1, m)) {
    report("cublas", "m %d n %d k %d lda %ld ldb %ld ldc %ld", m, n, k, long(a.ld), long(b.ld),
           long(c.ld));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const void* p : {a.p, b.p, c.p}) cusim::check_device_pointer(p, "cublas", 0);
  float al = *alpha, be = *beta;
  cudaError_t e = cusim::enqueue(h->stream, [=] {
    gemm(ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, al, a, b, be, c, c, batch,
         [](int, float*) {});
  });
  return e ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

struct Desc {
  cublasOperation_t ta = CUBLAS_OP_N, tb = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  int32_t bias_type = -1;  // A cudaDataType; -1: that of D.
  void* aux = nullptr;
  int64_t aux_ld = 0;
  int32_t aux_type = -1;
};
struct Layout {
  cudaDataType t;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
float gelu(float x) {
  return 0.5f * x * (1.0f + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}
float dgelu(float x) {
  float t = std::tanh(0.7978845608f * (x + 0.044715f * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 3 * 0.044715f * x * x);
}
}  // namespace

extern "C" {
cublasStatus_t cublasCreate_v2(cublasHandle_t* h) {
  *h = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
  delete h;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) {
  h->stream = s;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t) { return "cusim"; }
cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                              int n, int k, const float* al, const float* a, int lda,
                              const float* b, int ldb, const float* be, float* c, int ldc) {
  return queue_gemm(h, ta, tb, m, n, k, al, {a, CUDA_R_32F, lda, 0}, {b, CUDA_R_32F, ldb, 0}, be,
                    {c, CUDA_R_32F, ldc, 0}, 1);
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t h, cublasOperation_t ta,
                                         cublasOperation_t tb, int m, int n, int k, const float* al,
                                         const float* a, int lda, long long sa, const float* b,
                                         int ldb, long long sb, const float* be, float* c, int ldc,
                                         long long sc, int batch) {
  return queue_gemm(h, ta, tb, m, n, k, al, {a, CUDA_R_32F, lda, sa}, {b, CUDA_R_32F, ldb, sb}, be,
                    {c, CUDA_R_32F, ldc, sc}, batch);
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
                            int n, int k, const void* al, const void* a, cudaDataType at, int lda,
                            const void* b, cudaDataType bt, int ldb, const void* be, void* c,
                            cudaDataType ct, int ldc, cublasComputeType_t, cublasGemmAlgo_t) {
  return queue_gemm(h, ta, tb, m, n, k, static_cast<const float*>(al), {a, at, lda, 0},
                    {b, bt, ldb, 0}, static_cast<const float*>(be), {c, ct, ldc, 0}, 1);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta,
                                          cublasOperation_t tb, int m, int n, int k, const void* al,
                                          const void* a, cudaDataType at, int lda, long long sa,
                                          const void* b, cudaDataType bt, int ldb, long long sb,
                                          const void* be, void* c, cudaDataType ct, int ldc,
                                          long long sc, int batch, cublasComputeType_t,
                                          cublasGemmAlgo_t) {
  return queue_gemm(h, ta, tb, m, n, k, static_cast<const float*>(al), {a, at, lda, sa},
                    {b, bt, ldb, sb}, static_cast<const float*>(be), {c, ct, ldc, sc}, batch);
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  *h = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
  delete h;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t,
                                        cudaDataType_t) {
  *d = reinterpret_cast<cublasLtMatmulDesc_t>(new Desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete reinterpret_cast<Desc*>(d);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t a, const void* v,
                                              size_t n) {
  Desc* d = reinterpret_cast<Desc*>(desc);
  auto take = [&](auto& to) {
    if (n != sizeof to)
      report("cublasLt", "attribute %d of %zu bytes", int(a), n);
    else
      std::memcpy(&to, v, n);
  };
  switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      take(d->ta);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      take(d->tb);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      take(d->epilogue);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      take(d->bias);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      take(d->bias_type);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      take(d->aux);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      take(d->aux_ld);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      take(d->aux_type);
      break;
    default:
      report("cublasLt", "attribute %d isn't simulated", int(a));
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType t, uint64_t r,
                                          uint64_t c, int64_t ld) {
  *l = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{t, r, c, ld});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete reinterpret_cast<Layout*>(l);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t a, const void* v,
                                                size_t) {
  Layout* y = reinterpret_cast<Layout*>(l);
  if (a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
    std::memcpy(&y->batch, v, sizeof y->batch);
  else if (a == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    std::memcpy(&y->stride, v, sizeof y->stride);
  else
    report("cublasLt", "layout attribute %d isn't simulated", int(a));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = reinterpret_cast<cublasLtMatmulPreference_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete reinterpret_cast<char*>(p);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t r[], int* n) {
  std::memset(r, 0, sizeof *r);
  r->state = CUBLAS_STATUS_SUCCESS;
  *n = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* A, cublasLtMatrixLayout_t la, const void* B,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* C,
                              cublasLtMatrixLayout_t lc, void* D, cublasLtMatrixLayout_t ldd,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  Desc q = *reinterpret_cast<Desc*>(desc);
  Layout a = *reinterpret_cast<Layout*>(la), b = *reinterpret_cast<Layout*>(lb),
         c = *reinterpret_cast<Layout*>(lc), d = *reinterpret_cast<Layout*>(ldd);
  bool ta = q.ta != CUBLAS_OP_N, tb = q.tb != CUBLAS_OP_N;
  int m = int(d.rows), n = int(d.cols), k = int(ta ? a.rows : a.cols);
  if (int(ta ? a.cols : a.rows) != m || int(tb ? b.rows : b.cols) != n ||
      int(tb ? b.cols : b.rows) != k) {
    report("cublasLt", "A %lux%lu%s B %lux%lu%s D %dx%d", a.rows, a.cols, ta ? "^T" : "", b.rows,
           b.cols, tb ? "^T" : "", m, n);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  for (const void* p : {A, B, C, static_cast<const void*>(D), static_cast<const void*>(q.bias),
                        static_cast<const void*>(q.aux)})
    cusim::check_device_pointer(p, "cublasLt", 0);
  float al = *static_cast<const float*>(alpha), be = *static_cast<const float*>(beta);
  auto bias_type = q.bias_type == -1 ? d.t : static_cast<cudaDataType>(q.bias_type);
  auto aux_type = q.aux_type == -1 ? d.t : static_cast<cudaDataType>(q.aux_type);
  cudaError_t e = cusim::enqueue(stream, [=] {
    auto ep = static_cast<unsigned>(q.epilogue);
    if (ep == CUBLASLT_EPILOGUE_BGRADA || ep == CUBLASLT_EPILOGUE_BGRADB) {
      bool of_a = ep == CUBLASLT_EPILOGUE_BGRADA;
      const void* p = of_a ? A : B;
      Layout y = of_a ? a : b;
      bool t = of_a ? ta : tb;
      int out = of_a ? m : n;
      for (int i = 0; i < out; ++i) {
        double sum = 0;
        for (int j = 0; j < k; ++j) {
          bool row_is_out = of_a ? !t : t;
          sum += get(p, y.t, static_cast<size_t>(row_is_out ? j * y.ld + i : i * y.ld + j));
        }
        set(q.bias, bias_type, static_cast<size_t>(i), static_cast<float>(sum));
      }
    }
    gemm(ta, tb, m, n, k, al, {A, a.t, a.ld, a.stride}, {B, b.t, b.ld, b.stride}, be,
         {C, c.t, c.ld, c.stride}, {D, d.t, d.ld, d.stride}, d.batch, [&](int, float* out) {
           auto each = [&](auto f) {
             for (int j = 0; j < n; ++j)
               for (int i = 0; i < m; ++i)
                 f(i, j,
                   out[static_cast<size_t>(j) * static_cast<size_t>(m) + static_cast<size_t>(i)]);
           };
           if (ep & CUBLASLT_EPILOGUE_BIAS)
             each([&](int i, int, float& v) {
               v += get(q.bias, bias_type, static_cast<size_t>(i));
             });
           if (ep == CUBLASLT_EPILOGUE_RELU || ep == CUBLASLT_EPILOGUE_RELU_BIAS)
             each([&](int, int, float& v) { v = v > 0 ? v : 0; });
           if (ep == CUBLASLT_EPILOGUE_GELU_AUX || ep == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
             each([&](int i, int j, float& v) {
               set(q.aux, aux_type, static_cast<size_t>(j * q.aux_ld + i), v);
             });
           if (ep == CUBLASLT_EPILOGUE_GELU || ep == CUBLASLT_EPILOGUE_GELU_BIAS ||
               ep == CUBLASLT_EPILOGUE_GELU_AUX || ep == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
             each([&](int, int, float& v) { v = gelu(v); });
           if (ep == CUBLASLT_EPILOGUE_DGELU || ep == CUBLASLT_EPILOGUE_DGELU_BGRAD)
             each([&](int i, int j, float& v) {
               v *= dgelu(get(q.aux, aux_type, static_cast<size_t>(j * q.aux_ld + i)));
             });
           if (ep == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
             std::vector<double> sum(static_cast<size_t>(m));
             each([&](int i, int, float& v) { sum[static_cast<size_t>(i)] += v; });
             for (int i = 0; i < m; ++i)
               set(q.bias, bias_type, static_cast<size_t>(i),
                   static_cast<float>(sum[static_cast<size_t>(i)]));
           }
         });
  });
  return e ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
}
