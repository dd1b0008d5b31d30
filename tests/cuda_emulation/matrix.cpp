#include "tests/cuda_emulation/matrix.h"

#include <cuda_bf16.h>

#include <vector>

#include "framework/backend/gemm.h"
#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

namespace gs::cuda_emulation {
namespace {

// The elements of a matrix as T, in place where they are that already.
template <typename T>
const T* elements_as(const Matrix& matrix, cudaDataType type, std::vector<T>& space) {
  if (matrix.type == type) return static_cast<const T*>(matrix.data);
  space.resize(static_cast<size_t>(matrix.stride * matrix.columns));
  for (int64_t column = 0; column < matrix.columns; ++column) {
    for (int64_t row = 0; row < matrix.rows; ++row) {
      const int64_t index = column * matrix.stride + row;
      space[static_cast<size_t>(index)] = static_cast<T>(element(matrix.data, matrix.type, index));
    }
  }
  return space.data();
}

template <typename T>
void multiply_as(const Product& product, cudaDataType type) {
  const int64_t m = product.m(), n = product.n();
  std::vector<T> a_space, b_space, result(static_cast<size_t>(m * n));
  const T* const a = elements_as(product.a, type, a_space);
  const T* const b = elements_as(product.b, type, b_space);
  const Matrix &c = product.c, &d = product.d;
  const auto each = [&](auto&& action) {
    for (int64_t column = 0; column < n; ++column) {
      for (int64_t row = 0; row < m; ++row)
        action(row, column, result[static_cast<size_t>(column * m + row)]);
    }
  };
  if (product.beta != 0) {
    each([&](int64_t row, int64_t column, T& value) {
      value = static_cast<T>(element(c.data, c.type, column * c.stride + row));
    });
  }
  // Column-major is row-major of the transposed: D^T = op(B)^T op(A)^T.
  backend::gemm(Cpu{},
                {.m = n,
                 .n = m,
                 .k = product.k(),
                 .transpose_a = product.transpose_b,
                 .transpose_b = product.transpose_a,
                 .a_stride = product.b.stride,
                 .b_stride = product.a.stride,
                 .c_stride = m,
                 .alpha = product.alpha,
                 .beta = product.beta},
                b, a, result.data());
  each([&](int64_t row, int64_t column, T& value) {
    set_element(d.data, d.type, column * d.stride + row,
                product.finish(row, static_cast<double>(value)));
  });
}

}  // namespace

size_t element_bytes(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_16BF:
      return 2;
    default:
      return 0;
  }
}

double element(const void* data, cudaDataType type, int64_t index) {
  if (type == CUDA_R_64F) return static_cast<const double*>(data)[index];
  if (type == CUDA_R_16BF) return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
  return static_cast<const float*>(data)[index];
}

void set_element(void* data, cudaDataType type, int64_t index, double value) {
  const auto single = static_cast<float>(value);
  if (type == CUDA_R_64F) {
    static_cast<double*>(data)[index] = value;
  } else if (type == CUDA_R_16BF) {
    static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(single);
  } else {
    static_cast<float*>(data)[index] = single;
  }
}

Matrix Matrix::from(int64_t offset) const {
  Matrix result = *this;
  result.data = static_cast<char*>(data) + offset * static_cast<int64_t>(element_bytes(type));
  return result;
}

void Matrix::check_place(const char* user) const {
  if (rows == 0 || columns == 0) return;
  const int64_t elements = stride * (columns - 1) + rows;
  check_device_range(data, static_cast<size_t>(elements) * element_bytes(type), user);
}

void multiply(const Product& product) {
  if (product.m() == 0 || product.n() == 0) return;
  if (product.a.type == CUDA_R_64F) {
    multiply_as<double>(product, CUDA_R_64F);
  } else {
    multiply_as<float>(product, CUDA_R_32F);
  }
}

}  // namespace gs::cuda_emulation
