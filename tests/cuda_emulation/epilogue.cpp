#include "tests/cuda_emulation/epilogue.h"

#include <cublasLt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/cuda_emulation/runtime.h"

namespace gs::cuda_emulation {
namespace {

constexpr uint32_t kRelu = CUBLASLT_EPILOGUE_RELU, kBias = CUBLASLT_EPILOGUE_BIAS,
                   kGelu = CUBLASLT_EPILOGUE_GELU, kAux = 128, kReluGradient = 8,
                   kBiasGradient = 16, kGeluGradient = 64,
                   kBiasGradientA = CUBLASLT_EPILOGUE_BGRADA,
                   kBiasGradientB = CUBLASLT_EPILOGUE_BGRADB;

bool known(uint32_t kind) {
  constexpr uint32_t kKinds[] = {
      CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_RELU,        CUBLASLT_EPILOGUE_RELU_AUX,
      CUBLASLT_EPILOGUE_BIAS,     CUBLASLT_EPILOGUE_RELU_BIAS,   CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DRELU,    CUBLASLT_EPILOGUE_DRELU_BGRAD, CUBLASLT_EPILOGUE_GELU,
      CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_GELU_BIAS,   CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
      CUBLASLT_EPILOGUE_DGELU,    CUBLASLT_EPILOGUE_DGELU_BGRAD, CUBLASLT_EPILOGUE_BGRADA,
      CUBLASLT_EPILOGUE_BGRADB};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// GELU in its tanh form, and its derivative.
constexpr double kRootOfTwoOverPi = 0.79788456080286536, kCubic = 0.044715;
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(kRootOfTwoOverPi * (x + kCubic * x * x * x)));
}
double gelu_gradient(double x) {
  const double t = std::tanh(kRootOfTwoOverPi * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kRootOfTwoOverPi * (1 + 3 * kCubic * x * x);
}

cudaDataType type_or(int32_t type, cudaDataType otherwise) {
  return type == -1 ? otherwise : static_cast<cudaDataType>(type);
}

// ReLU's auxiliary matrix has a bit an element.
bool has_bits(uint32_t kind) { return (kind & kAux) != 0 && (kind & (kRelu | kReluGradient)) != 0; }

// How many elements the bias, or its gradient, has.
int64_t bias_elements(uint32_t kind, const Product& product) {
  if ((kind & (kBias | kBiasGradient | kBiasGradientA)) != 0) return product.m();
  return kind == kBiasGradientB ? product.n() : 0;
}

// Sums of op(A)'s rows or op(B)'s columns.
void input_gradient(const Matrix& matrix, bool along_columns, int64_t count, int64_t k, void* to,
                    cudaDataType type) {
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) {
      const int64_t row = along_columns ? i : j, column = along_columns ? j : i;
      sum += element(matrix.data, matrix.type, column * matrix.stride + row);
    }
    set_element(to, type, i, sum);
  }
}

}  // namespace

const char* Epilogue::wrong(int64_t rows) const {
  if (!known(kind)) return "no epilogue has this number";
  if (kind == CUBLASLT_EPILOGUE_DEFAULT) return nullptr;
  const bool needs_bias = (kind & (kBias | kBiasGradient | kBiasGradientA | kBiasGradientB)) != 0;
  if (needs_bias && bias == nullptr) return "the pointer of the bias is missing";
  if ((kind & kAux) == 0) return nullptr;
  if (aux == nullptr) return "the pointer of the auxiliary matrix is missing";
  if (reinterpret_cast<uintptr_t>(aux) % 16 != 0)
    return "the auxiliary matrix is not aligned to 16 bytes";
  const int64_t multiple = has_bits(kind) ? 128 : 8;
  if (aux_stride < rows || aux_stride % multiple != 0 || aux_batch_stride % multiple != 0)
    return "strides of the auxiliary matrix must be multiples of 128 (ReLU) or 8 (GELU) and hold "
           "the rows";
  return nullptr;
}

void Epilogue::check_places(const Product& product, int64_t batch_count) const {
  const cudaDataType type = product.d.type;
  const int64_t last = batch_count - 1, count = bias_elements(kind, product);
  if (count > 0)
    check_device_range(bias,
                       static_cast<size_t>(bias_batch_stride * last + count) *
                           element_bytes(type_or(bias_type, type)),
                       "cublasLtMatmul's bias");
  if ((kind & kAux) == 0) return;
  const int64_t elements = aux_batch_stride * last + aux_stride * product.n();
  check_device_range(aux,
                     has_bits(kind)
                         ? static_cast<size_t>(elements / 8)
                         : static_cast<size_t>(elements) * element_bytes(type_or(aux_type, type)),
                     "cublasLtMatmul's auxiliary matrix");
}

void Epilogue::multiply(Product product, int64_t batch) const {
  if (kind == CUBLASLT_EPILOGUE_DEFAULT) return cuda_emulation::multiply(product);
  const cudaDataType bias_as = type_or(bias_type, product.d.type);
  const cudaDataType aux_as = type_or(aux_type, product.d.type);
  void* const bias_here =
      bias == nullptr ? nullptr
                      : Matrix{.data = bias, .type = bias_as}.from(bias_batch_stride * batch).data;
  if (kind == kBiasGradientA)
    input_gradient(product.a, !product.transpose_a, product.m(), product.k(), bias_here, bias_as);
  if (kind == kBiasGradientB)
    input_gradient(product.b, product.transpose_b, product.n(), product.k(), bias_here, bias_as);
  auto* const bits = static_cast<unsigned char*>(aux);
  std::vector<double> sums(static_cast<size_t>(product.m()), 0.0);
  product.finish = [&](int64_t row, int64_t column, double value) {
    const int64_t index = aux_batch_stride * batch + column * aux_stride + row;
    if ((kind & kBias) != 0) value += element(bias_here, bias_as, row);
    if ((kind & kRelu) != 0) {
      const bool positive = value > 0;
      if (has_bits(kind)) {
        bits[index / 8] = static_cast<unsigned char>((bits[index / 8] & ~(1u << index % 8)) |
                                                     unsigned{positive} << index % 8);
      }
      value = positive || value != value ? value : 0;
    } else if ((kind & kGelu) != 0) {
      if ((kind & kAux) != 0) set_element(aux, aux_as, index, value);
      value = gelu(value);
    } else if ((kind & kReluGradient) != 0) {
      if ((bits[index / 8] >> index % 8 & 1) == 0) value = 0;
    } else if ((kind & kGeluGradient) != 0) {
      value *= gelu_gradient(element(aux, aux_as, index));
    }
    if ((kind & kBiasGradient) != 0) sums[static_cast<size_t>(row)] += value;
    return value;
  };
  cuda_emulation::multiply(product);
  if ((kind & kBiasGradient) == 0) return;
  for (int64_t row = 0; row < product.m(); ++row)
    set_element(bias_here, bias_as, row, sums[static_cast<size_t>(row)]);
}

}  // namespace gs::cuda_emulation
