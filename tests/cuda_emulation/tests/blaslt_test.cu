// cuBLASLt as emulated, against products in double precision.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/tests/device.h"

namespace gs::cuda_emulation {
namespace {

using Doubles = std::vector<double>;

template <typename T>
constexpr cudaDataType kType = CUDA_R_32F;
template <>
constexpr cudaDataType kType<double> = CUDA_R_64F;
template <>
constexpr cudaDataType kType<__nv_bfloat16> = CUDA_R_16BF;

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __bfloat162float(value);
  return static_cast<double>(value);
}
template <typename T>
Doubles as_doubles(const std::vector<T>& values) {
  Doubles result;
  for (const T value : values) result.push_back(as_double(value));
  return result;
}

// Quarters between -2 and 2: exact in every type, products exact in float32.
template <typename T>
std::vector<T> numbers(size_t count, int seed) {
  std::vector<T> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(
        static_cast<T>(static_cast<float>((static_cast<int>(i) * 7 + seed * 5) % 17 - 8) / 4.0f));
  return values;
}

constexpr int kM = 5, kN = 3, kK = 4;

// A B, all column-major and dense.
Doubles product_of(const Doubles& a, const Doubles& b) {
  Doubles d;
  for (size_t column = 0; column < kN; ++column) {
    for (size_t row = 0; row < kM; ++row) {
      double sum = 0;
      for (size_t i = 0; i < kK; ++i) sum += a[i * kM + row] * b[column * kK + i];
      d.push_back(sum);
    }
  }
  return d;
}

// One product by cuBLASLt: descriptors, settings, call.
class Lt {
 public:
  Lt(cudaDataType type, cudaDataType stored, cublasComputeType_t compute, cudaDataType scale)
      : scale_(scale) {
    cublasLtCreate(&handle_);
    cublasLtMatmulDescCreate(&description_, compute, scale);
    cublasLtMatrixLayoutCreate(&a_, type, kM, kK, kM);
    cublasLtMatrixLayoutCreate(&b_, type, kK, kN, kK);
    cublasLtMatrixLayoutCreate(&d_, stored, kM, kN, kM);
    cublasLtMatmulPreferenceCreate(&preference_);
  }
  ~Lt() {
    cublasLtMatmulPreferenceDestroy(preference_);
    for (cublasLtMatrixLayout_t each : {a_, b_, d_}) cublasLtMatrixLayoutDestroy(each);
    cublasLtMatmulDescDestroy(description_);
    cublasLtDestroy(handle_);
  }
  Lt(const Lt&) = delete;
  Lt& operator=(const Lt&) = delete;

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    ASSERT_EQ(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value),
              CUBLAS_STATUS_SUCCESS);
  }
  void set_epilogue(cublasLtEpilogue_t epilogue, void* bias) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  cublasStatus_t heuristic(int* count) {
    cublasLtMatmulHeuristicResult_t results[8];
    return cublasLtMatmulAlgoGetHeuristic(handle_, description_, a_, b_, d_, d_, preference_, 8,
                                          results, count);
  }
  cublasStatus_t multiply(const void* a, const void* b, void* d) {
    const float one = 1, zero = 0;
    const double one_double = 1, zero_double = 0;
    const bool wide = scale_ == CUDA_R_64F;
    return cublasLtMatmul(handle_, description_,
                          wide ? &one_double : static_cast<const void*>(&one), a, a_, b, b_,
                          wide ? &zero_double : static_cast<const void*>(&zero), d, d_, d, d_,
                          nullptr, nullptr, 0, nullptr);
  }

 private:
  cudaDataType scale_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

template <typename T, typename Stored = T>
void check_product(cublasComputeType_t compute, cudaDataType scale) {
  const auto a = numbers<T>(kM * kK, 1), b = numbers<T>(kK * kN, 2);
  const DeviceArray<T> x(a), y(b);
  const DeviceArray<Stored> z(kM * kN);
  Lt lt(kType<T>, kType<Stored>, compute, scale);
  int count = 0;
  EXPECT_EQ(lt.heuristic(&count), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(count, 3);
  ASSERT_EQ(lt.multiply(x.data(), y.data(), z.data()), CUBLAS_STATUS_SUCCESS);
  Doubles right = product_of(as_doubles(a), as_doubles(b));
  for (double& value : right) value = as_double(static_cast<Stored>(static_cast<float>(value)));
  EXPECT_EQ(as_doubles(z.values()), right);
}

TEST(BlasLt, MultipliesInEachType) {
  check_product<float>(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  check_product<float>(CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F);
  check_product<double>(CUBLAS_COMPUTE_64F, CUDA_R_64F);
  check_product<__nv_bfloat16>(CUBLAS_COMPUTE_32F, CUDA_R_32F);
  check_product<__nv_bfloat16, float>(CUBLAS_COMPUTE_32F, CUDA_R_32F);
}

TEST(BlasLt, RefusesTypesThatTheTableLacks) {
  int count = 0;
  Lt mixed(CUDA_R_32F, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  EXPECT_EQ(mixed.heuristic(&count), CUBLAS_STATUS_NOT_SUPPORTED);
  Lt narrow(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  EXPECT_EQ(narrow.heuristic(&count), CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(count, 0);
}

class Epilogues : public testing::Test {
 protected:
  void SetUp() override {
    if (options().refuse_epilogues) GTEST_SKIP() << "the mode refuse_epilogues refuses them";
  }
  void run(cublasLtEpilogue_t epilogue, float* bias) {
    lt_.set_epilogue(epilogue, bias);
    ASSERT_EQ(lt_.multiply(a_.data(), b_.data(), d_.data()), CUBLAS_STATUS_SUCCESS);
  }

  const std::vector<float> host_a_ = numbers<float>(kM * kK, 1),
                           host_b_ = numbers<float>(kK * kN, 2);
  const DeviceArray<float> a_{host_a_}, b_{host_b_}, d_{size_t{kM * kN}};
  const Doubles product_ = product_of(as_doubles(host_a_), as_doubles(host_b_));
  Lt lt_{CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
};

TEST_F(Epilogues, AddBiasAndRectify) {
  const std::vector<float> bias = numbers<float>(kM, 4);
  const DeviceArray<float> device_bias(bias);
  Doubles sums = product_;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += bias[i % kM];
  run(CUBLASLT_EPILOGUE_BIAS, device_bias.data());
  EXPECT_EQ(as_doubles(d_.values()), sums);
  Doubles rectified = sums;
  for (double& value : rectified) value = std::max(value, 0.0);
  run(CUBLASLT_EPILOGUE_RELU_BIAS, device_bias.data());
  EXPECT_EQ(as_doubles(d_.values()), rectified);
}

TEST_F(Epilogues, AreRefusedWhereTheyAreNotEmulatedOrLackTheirBias) {
  int count = 0;
  const DeviceArray<float> bias{size_t{kM}};
  lt_.set_epilogue(CUBLASLT_EPILOGUE_BIAS, nullptr);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_GELU, bias.data());
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(count, 0);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_BIAS, bias.data());
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace gs::cuda_emulation
