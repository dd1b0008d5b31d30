// Matrices of the emulated library: column-major, of any element type, in device memory.
#pragma once

#include <library_types.h>

#include <cstdint>
#include <functional>

namespace gs::cuda_emulation {

// 0 for a type that is not emulated.
size_t element_bytes(cudaDataType type);
double element(const void* data, cudaDataType type, int64_t index);
void set_element(void* data, cudaDataType type, int64_t index, double value);

struct Matrix {
  void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, columns = 0, stride = 0;  // stride: the leading dimension

  // Whether the stride leaves room for a column.
  bool valid() const { return rows >= 0 && columns >= 0 && stride >= (rows > 1 ? rows : 1); }
  // The same `offset` elements on.
  Matrix from(int64_t offset) const;
  // Stops the program unless the matrix lies in device memory: the CPU's library, which is not
  // instrumented, would read beyond it unseen.
  void check_place(const char* user) const;
};

// D = alpha op(A) op(B) + beta C, in float64 if A is, else in float32 and rounded once. C is not
// read if beta is 0. `finish(row, value)` gives what is stored.
struct Product {
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  Matrix a, b, c, d;
  std::function<double(int64_t row, double value)> finish;

  int64_t m() const { return d.rows; }
  int64_t n() const { return d.columns; }
  int64_t k() const { return transpose_a ? a.rows : a.columns; }
};
void multiply(const Product& product);

}  // namespace gs::cuda_emulation
