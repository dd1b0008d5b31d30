#include "framework/backend/cuda/product.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>

#include "framework/backend/convert.h"
#include "framework/backend/cuda/runtime.h"
#include "framework/backend/memory.h"

// cuBLASLt knows column-major matrices: it is given C^T = op(B)^T op(A)^T, so that its A is our B.
// What it needs for a product of one shape is made once and kept.
namespace gs::backend {
namespace {

constexpr int64_t kWorkspace = int64_t{32} << 20;  // bytes a device, what Hopper's kernels want

struct Call {
  Cuda device;
  const char* operation;
  const Product& product;
  const void *a, *b, *bias;
  void* c;
};

void check_library(cublasStatus_t status, const Call& call, const char* function,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  const Product& p = call.product;
  fail("{}: {} gives {} ({}) for {} products of {} x {} x {}, {} to {}, at {}:{}", call.operation,
       function, static_cast<int>(status), cublasLtGetStatusString(status), p.count, p.sizes.m,
       p.sizes.n, p.sizes.k, p.in, p.out, file, line);
}

struct Destroy {
  void operator()(cublasLtMatmulDescOpaque_t* it) const { cublasLtMatmulDescDestroy(it); }
  void operator()(cublasLtMatrixLayoutOpaque_t* it) const { cublasLtMatrixLayoutDestroy(it); }
  void operator()(cublasLtMatmulPreferenceOpaque_t* it) const {
    cublasLtMatmulPreferenceDestroy(it);
  }
};
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy>;

// Everything that the library is told of a product, and the algorithm chosen for it.
struct Plan {
  Description description;
  Layout a, b, c;  // of our matrices
  cublasLtMatmulAlgo_t algorithm{};
  bool possible = false;
};

// In the order of Product, with TF32 and alignments.
using Key = std::array<int64_t, 19>;

struct DeviceState {
  std::mutex mutex;
  cublasLtHandle_t library = nullptr;
  void* workspace = nullptr;
  std::map<Key, Plan> plans;
};

// Never destroyed: the library must not be called while the process ends.
DeviceState& state_of(Cuda device) {
  static std::mutex mutex;
  static auto& states = *new std::map<int, DeviceState>;
  const std::lock_guard lock(mutex);
  return states[device.index];
}

void open(DeviceState& state, const Call& call) {
  if (state.library != nullptr) return;
  check_library(cublasLtCreate(&state.library), call, "cublasLtCreate");
  check_cuda(cudaMalloc(&state.workspace, kWorkspace), "cudaMalloc of the products' workspace");
}

// Of all matrices of a batch, in bytes; kernels need no more than 16.
int64_t alignment(const void* data, int64_t step, DType dtype) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(data) |
                        static_cast<uint64_t>(step) * static_cast<uint64_t>(size_of(dtype)) | 16;
  return static_cast<int64_t>(bits & (~bits + 1));
}

int64_t a_alignment(const Call& call) {
  return alignment(call.a, call.product.a_step, call.product.in);
}
int64_t b_alignment(const Call& call) {
  return alignment(call.b, call.product.b_step, call.product.in);
}
int64_t c_alignment(const Call& call) {
  return alignment(call.c, call.product.c_step, call.product.out);
}

Key key_of(const Call& call) {
  const Product& p = call.product;
  const GemmSizes& s = p.sizes;
  return {s.m,
          s.n,
          s.k,
          s.transpose_a,
          s.transpose_b,
          s.a_stride,
          s.b_stride,
          s.c_stride,
          static_cast<int64_t>(p.in),
          static_cast<int64_t>(p.out),
          p.count,
          p.a_step,
          p.b_step,
          p.c_step,
          int64_t{p.bias} * 2 + p.relu,
          uses_tf32(),
          a_alignment(call),
          b_alignment(call),
          c_alignment(call)};
}

cudaDataType_t type_of(DType dtype) {
  return dtype == kFloat32 ? CUDA_R_32F : dtype == kFloat64 ? CUDA_R_64F : CUDA_R_16BF;
}

// Both multiply: float32 alone has a choice.
cublasComputeType_t arithmetic_of(const Product& product) {
  if (product.in == kFloat64) return CUBLAS_COMPUTE_64F;
  return product.in == kFloat32 && uses_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// alpha or beta in the type that the library expects.
struct Scalar {
  Scalar(double value, const Product& product) : wide(value), narrow(static_cast<float>(value)) {
    data = product.in == kFloat64 ? static_cast<const void*>(&wide) : &narrow;
  }
  Scalar(const Scalar&) = delete;
  double wide;
  float narrow;
  const void* data;
};

template <typename T>
void set(const Call& call, cublasLtMatmulDesc_t description,
         cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_library(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), call,
                "cublasLtMatmulDescSetAttribute");
}
template <typename T>
void set(const Call& call, cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
         const T& value) {
  check_library(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), call,
                "cublasLtMatrixLayoutSetAttribute");
}
template <typename T>
void set(const Call& call, cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check_library(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
                call, "cublasLtMatmulPreferenceSetAttribute");
}

Description describe(const Call& call) {
  const Product& product = call.product;
  cublasLtMatmulDesc_t raw = nullptr;
  check_library(cublasLtMatmulDescCreate(&raw, arithmetic_of(product),
                                         product.in == kFloat64 ? CUDA_R_64F : CUDA_R_32F),
                call, "cublasLtMatmulDescCreate");
  Description description(raw);
  const auto form = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(call, raw, CUBLASLT_MATMUL_DESC_TRANSA, form(product.sizes.transpose_b));
  set(call, raw, CUBLASLT_MATMUL_DESC_TRANSB, form(product.sizes.transpose_a));
  if (product.bias || product.relu) {
    const cublasLtEpilogue_t epilogue = !product.bias  ? CUBLASLT_EPILOGUE_RELU
                                        : product.relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                                       : CUBLASLT_EPILOGUE_BIAS;
    set(call, raw, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  }
  if (product.bias) set(call, raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
  return description;
}

// Of a row-major matrix.
Layout layout_of(const Call& call, DType dtype, int64_t rows, int64_t columns, int64_t stride,
                 int64_t step) {
  cublasLtMatrixLayout_t raw = nullptr;
  check_library(cublasLtMatrixLayoutCreate(&raw, type_of(dtype), static_cast<uint64_t>(columns),
                                           static_cast<uint64_t>(rows), stride),
                call, "cublasLtMatrixLayoutCreate");
  Layout layout(raw);
  if (call.product.count > 1) {
    set(call, raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(call.product.count));
    set(call, raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  return layout;
}

Preference preference_for(const Call& call) {
  cublasLtMatmulPreference_t raw = nullptr;
  check_library(cublasLtMatmulPreferenceCreate(&raw), call, "cublasLtMatmulPreferenceCreate");
  Preference preference(raw);
  set(call, raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspace));
  const auto a = static_cast<uint32_t>(a_alignment(call)),
             b = static_cast<uint32_t>(b_alignment(call)),
             c = static_cast<uint32_t>(c_alignment(call));
  set(call, raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b);
  set(call, raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a);
  set(call, raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c);
  set(call, raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c);
  // Parts of a sum must not be added in bfloat16.
  if (call.product.out == kBFloat16) {
    set(call, raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  }
  return preference;
}

cublasStatus_t start(DeviceState& state, const Call& call, const Plan& plan, void* c, double alpha,
                     const cublasLtMatmulAlgo_t& algorithm) {
  const Scalar a(alpha, call.product), b(call.product.sizes.beta, call.product);
  return cublasLtMatmul(state.library, plan.description.get(), a.data, call.b, plan.b.get(), call.a,
                        plan.a.get(), b.data, call.c, plan.c.get(), c, plan.c.get(), &algorithm,
                        state.workspace, kWorkspace, stream_of(call.device));
}

// Milliseconds of the best of a few calls, whose results go to `c`.
float time_of(DeviceState& state, const Call& call, const Plan& plan, void* c,
              const cublasLtMatmulAlgo_t& algorithm) {
  constexpr int kCalls = 4;  // the first one warms up
  const cudaStream_t stream = stream_of(call.device);
  cudaEvent_t before = nullptr, after = nullptr;
  check_cuda(cudaEventCreate(&before), "cudaEventCreate");
  check_cuda(cudaEventCreate(&after), "cudaEventCreate");
  float best = INFINITY;
  for (int i = 0; i < kCalls; ++i) {
    check_cuda(cudaEventRecord(before, stream), "cudaEventRecord");
    const cublasStatus_t status = start(state, call, plan, c, call.product.sizes.alpha, algorithm);
    if (status != CUBLAS_STATUS_SUCCESS) break;
    check_cuda(cudaEventRecord(after, stream), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(after), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, before, after), "cudaEventElapsedTime");
    if (i > 0) best = std::min(best, milliseconds);
  }
  check_cuda(cudaEventDestroy(before), "cudaEventDestroy");
  check_cuda(cudaEventDestroy(after), "cudaEventDestroy");
  return best;
}

// The fastest of those that the library proposes; C stays as it is.
int fastest(DeviceState& state, const Call& call, const Plan& plan,
            const cublasLtMatmulHeuristicResult_t* results, int count) {
  const Product& p = call.product;
  const int64_t elements = (p.count - 1) * p.c_step + p.sizes.m * p.sizes.c_stride;
  const Memory c(Device::cuda(call.device.index), elements * size_of(p.out));
  int best = 0;
  float least = INFINITY;
  for (int i = 0; i < count; ++i) {
    const float time = time_of(state, call, plan, c.data(), results[i].algo);
    if (time < least) {
      least = time;
      best = i;
    }
  }
  return best;
}

// Finds an algorithm, unless there is none.
void choose(DeviceState& state, const Call& call, Plan& plan) {
  constexpr int kMost = 8;
  const Preference preference = preference_for(call);
  const bool times = times_gemm_algorithms() && !capturing();
  cublasLtMatmulHeuristicResult_t results[kMost]{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      state.library, plan.description.get(), plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
      preference.get(), times ? kMost : 1, results, &count);
  const bool finishes = call.product.bias || call.product.relu;
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (finishes && status == CUBLAS_STATUS_INVALID_VALUE))
    return;
  check_library(status, call, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0 || results[0].state != CUBLAS_STATUS_SUCCESS) return;
  const int best = times && count > 1 ? fastest(state, call, plan, results, count) : 0;
  plan.algorithm = results[best].algo;
  plan.possible = true;
}

// Not copy_to_host: it is not the step that reads.
template <typename T>
T first_of(const Call& call) {
  T value;
  const cudaStream_t stream = stream_of(call.device);
  check_cuda(cudaMemcpyAsync(&value, call.c, sizeof value, cudaMemcpyDeviceToHost, stream),
             "cudaMemcpy of a product");
  check_cuda(cudaStreamSynchronize(stream), "cudaMemcpy of a product");
  return value;
}

// Whether NaN comes out of the algorithm's ReLU as NaN, which max(x, 0) need not do: with alpha of
// NaN all of C must be NaN.
bool keeps_nan(DeviceState& state, const Call& call, const Plan& plan) {
  if (start(state, call, plan, call.c, std::nan(""), plan.algorithm) != CUBLAS_STATUS_SUCCESS)
    return false;
  if (call.product.out == kFloat64) return std::isnan(first_of<double>(call));
  if (call.product.out == kFloat32) return std::isnan(first_of<float>(call));
  return std::isnan(from_bfloat16(first_of<BFloat16>(call)));
}

Plan make_plan(DeviceState& state, const Call& call) {
  const Product& p = call.product;
  const GemmSizes& s = p.sizes;
  Plan plan;
  plan.description = describe(call);
  plan.a = layout_of(call, p.in, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.a_stride,
                     p.a_step);
  plan.b = layout_of(call, p.in, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.b_stride,
                     p.b_step);
  plan.c = layout_of(call, p.out, s.m, s.n, s.c_stride, p.c_step);
  choose(state, call, plan);
  if (p.relu && plan.possible) plan.possible = keeps_nan(state, call, plan);
  return plan;
}

// Null where there is none yet and none can be made now.
Plan* plan_for(DeviceState& state, const Call& call) {
  constexpr size_t kMost = 1 << 14;  // some 10 MB
  const Key key = key_of(call);
  const auto found = state.plans.find(key);
  if (found != state.plans.end()) return &found->second;
  if (call.product.relu && capturing()) return nullptr;  // its ReLU cannot be tried
  if (state.plans.size() >= kMost) state.plans.clear();
  return &state.plans.emplace(key, make_plan(state, call)).first->second;
}

}  // namespace

bool multiply(Cuda device, const char* operation, const Product& product, const void* a,
              const void* b, void* c, const void* bias) {
  const Call call{device, operation, product, a, b, bias, c};
  stream_of(device);
  DeviceState& state = state_of(device);
  const std::lock_guard lock(state.mutex);  // plans and the workspace are used by one at a time
  open(state, call);
  Plan* const plan = plan_for(state, call);
  if (plan == nullptr || !plan->possible) return false;
  if (product.bias) set(call, plan->description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const cublasStatus_t status = start(state, call, *plan, c, product.sizes.alpha, plan->algorithm);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED && (product.bias || product.relu)) {
    plan->possible = false;
    return false;
  }
  check_library(status, call, "cublasLtMatmul");
  return true;
}

}  // namespace gs::backend
