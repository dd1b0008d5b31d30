// cuBLAS and cuBLASLt as emulated, against products in double precision.
#include <cublasLt.h>
#include <cublas_v2.h>
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

// alpha op(A) op(B) + beta C, all column-major and dense.
struct Reference {
  int m, n, k;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;

  Doubles operator()(const Doubles& a, const Doubles& b, const Doubles& c) const {
    Doubles d;
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int i = 0; i < k; ++i)
          sum += a[static_cast<size_t>(transpose_a ? row * k + i : i * m + row)] *
                 b[static_cast<size_t>(transpose_b ? i * n + column : column * k + i)];
        d.push_back(alpha * sum + beta * c[static_cast<size_t>(column * m + row)]);
      }
    }
    return d;
  }
};

constexpr int kM = 5, kN = 3, kK = 4;

class Blas : public testing::Test {
 protected:
  Blas() { cublasCreate(&handle_); }
  ~Blas() override { cublasDestroy(handle_); }
  cublasHandle_t handle_ = nullptr;
};

TEST_F(Blas, MultipliesDoubles) {
  const auto a = numbers<double>(kM * kK, 1), b = numbers<double>(kK * kN, 2),
             c = numbers<double>(kM * kN, 3);
  const double alpha = 0.5, beta = 2;
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const DeviceArray<double> x(a), y(b), z(c);
      ASSERT_EQ(
          cublasDgemm(handle_, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                      transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, kM, kN, kK, &alpha, x.data(),
                      transpose_a ? kK : kM, y.data(), transpose_b ? kN : kK, &beta, z.data(), kM),
          CUBLAS_STATUS_SUCCESS);
      EXPECT_EQ(z.values(),
                (Reference{kM, kN, kK, transpose_a, transpose_b, alpha, beta}(a, b, c)));
    }
  }
}

TEST_F(Blas, MultipliesBatchesByStridesAndByPointers) {
  const auto a = numbers<float>(2 * kM * kK, 1), b = numbers<float>(2 * kK * kN, 2);
  const float one = 1, zero = 0;
  const DeviceArray<float> x(a), y(b), z(2 * kM * kN), by_pointers(2 * kM * kN);
  ASSERT_EQ(
      cublasSgemmStridedBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one, x.data(), kM,
                                kM * kK, y.data(), kK, kK * kN, &zero, z.data(), kM, kM * kN, 2),
      CUBLAS_STATUS_SUCCESS);
  const DeviceArray<const float*> xs({x.data(), x.data() + kM * kK}),
      ys({y.data(), y.data() + kK * kN});
  const DeviceArray<float*> zs(
      std::vector<float*>{by_pointers.data() + kM * kN, by_pointers.data()});
  ASSERT_EQ(cublasSgemmBatched(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kM, kN, kK, &one, xs.data(), kM,
                               ys.data(), kK, &zero, zs.data(), kM, 2),
            CUBLAS_STATUS_SUCCESS);
  Doubles right[2];
  for (int i = 0; i < 2; ++i) {
    const Doubles a_i = as_doubles(std::vector<float>(a.begin() + i * kM * kK, a.end()));
    const Doubles b_i = as_doubles(std::vector<float>(b.begin() + i * kK * kN, b.end()));
    right[i] = Reference{kM, kN, kK}(a_i, b_i, Doubles(kM * kN));
  }
  Doubles both = right[0], reversed = right[1];
  both.insert(both.end(), right[1].begin(), right[1].end());
  reversed.insert(reversed.end(), right[0].begin(), right[0].end());
  EXPECT_EQ(as_doubles(z.values()), both);
  EXPECT_EQ(as_doubles(by_pointers.values()), reversed);
}

TEST_F(Blas, TakesScalarsFromTheDevice) {
  const auto a = numbers<float>(4, 1);
  const DeviceArray<float> x(a), z(4), scalars(std::vector<float>{2.0f, 0.0f});
  cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE);
  ASSERT_EQ(cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, scalars.data(), x.data(), 2,
                        x.data(), 2, scalars.data() + 1, z.data(), 2),
            CUBLAS_STATUS_SUCCESS);
  const Doubles values = as_doubles(a);
  EXPECT_EQ(as_doubles(z.values()),
            (Reference{2, 2, 2, false, false, 2.0}(values, values, Doubles(4))));
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
  void set_epilogue(cublasLtEpilogue_t epilogue, void* bias, void* aux = nullptr,
                    int64_t stride = 0) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, stride);
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
  Doubles right = Reference{kM, kN, kK}(as_doubles(a), as_doubles(b), Doubles(kM * kN));
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

// The tanh form of GELU, and its derivative by a difference.
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

class Epilogues : public testing::Test {
 protected:
  void SetUp() override {
    if (options().refuse_epilogues) GTEST_SKIP() << "the mode refuse_epilogues refuses them";
  }
  void expect_near(const Doubles& got, const Doubles& right) {
    ASSERT_EQ(got.size(), right.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], right[i], 1e-5) << i;
  }
  void run(cublasLtEpilogue_t epilogue, float* bias, void* aux = nullptr, int64_t stride = 0) {
    lt_.set_epilogue(epilogue, bias, aux, stride);
    ASSERT_EQ(lt_.multiply(a_.data(), b_.data(), d_.data()), CUBLAS_STATUS_SUCCESS);
  }

  const std::vector<float> host_a_ = numbers<float>(kM * kK, 1),
                           host_b_ = numbers<float>(kK * kN, 2);
  const DeviceArray<float> a_{host_a_}, b_{host_b_}, d_{size_t{kM * kN}};
  const Doubles product_ =
      Reference{kM, kN, kK}(as_doubles(host_a_), as_doubles(host_b_), Doubles(kM* kN));
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

  // The mask of positive values: a bit an element, 128 bits a column.
  const DeviceArray<unsigned char> mask(std::vector<unsigned char>(16 * kN, 0));
  run(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, device_bias.data(), mask.data(), 128);
  EXPECT_EQ(as_doubles(d_.values()), rectified);
  for (int column = 0; column < kN; ++column) {
    unsigned bits = 0;
    for (int row = 0; row < kM; ++row)
      bits |= (sums[static_cast<size_t>(column * kM + row)] > 0 ? 1u : 0u) << row;
    EXPECT_EQ(mask.values()[static_cast<size_t>(16 * column)], bits) << column;
  }

  // Backward: the gradient where the mask is set, and its sums over the columns.
  const DeviceArray<float> bias_gradient{size_t{kM}};
  run(CUBLASLT_EPILOGUE_DRELU_BGRAD, bias_gradient.data(), mask.data(), 128);
  Doubles gradient = product_, row_sums(kM, 0.0);
  for (size_t i = 0; i < gradient.size(); ++i) {
    if (sums[i] <= 0) gradient[i] = 0;
    row_sums[i % kM] += gradient[i];
  }
  EXPECT_EQ(as_doubles(d_.values()), gradient);
  EXPECT_EQ(as_doubles(bias_gradient.values()), row_sums);
}

TEST_F(Epilogues, ApplyGelu) {
  const DeviceArray<float> aux{size_t{8 * kN}}, bias(std::vector<float>(kM, 0.25f));
  Doubles sums = product_, right;
  for (double& value : sums) value += 0.25;
  for (const double value : sums) right.push_back(gelu(value));
  run(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, bias.data(), aux.data(), 8);
  expect_near(as_doubles(d_.values()), right);
  const Doubles kept = as_doubles(aux.values());
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(kept[i / kM * 8 + i % kM], sums[i]) << i;

  const DeviceArray<float> bias_gradient{size_t{kM}};
  run(CUBLASLT_EPILOGUE_DGELU_BGRAD, bias_gradient.data(), aux.data(), 8);
  Doubles gradient, row_sums(kM, 0.0);
  for (size_t i = 0; i < sums.size(); ++i) {
    gradient.push_back(product_[i] * gelu_slope(sums[i]));
    row_sums[i % kM] += gradient[i];
  }
  expect_near(as_doubles(d_.values()), gradient);
  expect_near(as_doubles(bias_gradient.values()), row_sums);
}

TEST_F(Epilogues, SumTheInputs) {
  const DeviceArray<float> sums_a{size_t{kM}}, sums_b{size_t{kN}};
  run(CUBLASLT_EPILOGUE_BGRADA, sums_a.data());
  run(CUBLASLT_EPILOGUE_BGRADB, sums_b.data());
  EXPECT_EQ(as_doubles(d_.values()), product_);
  Doubles right_a(kM, 0.0), right_b(kN, 0.0);
  for (size_t i = 0; i < host_a_.size(); ++i) right_a[i % kM] += host_a_[i];
  for (size_t i = 0; i < host_b_.size(); ++i) right_b[i / kK] += host_b_[i];
  EXPECT_EQ(as_doubles(sums_a.values()), right_a);
  EXPECT_EQ(as_doubles(sums_b.values()), right_b);
}

TEST_F(Epilogues, HaveTheLimitsOfTheHeader) {
  int count = 0;
  const DeviceArray<unsigned char> aux{size_t{4096}};
  lt_.set_epilogue(CUBLASLT_EPILOGUE_RELU_AUX, nullptr, aux.data(), 64);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_GELU_AUX, nullptr, aux.data(), 12);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_GELU_AUX, nullptr, aux.data() + 8, 8);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_BIAS, nullptr);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_INVALID_VALUE);
  lt_.set_epilogue(CUBLASLT_EPILOGUE_GELU_AUX, nullptr, aux.data(), 8);
  EXPECT_EQ(lt_.heuristic(&count), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace gs::cuda_emulation
