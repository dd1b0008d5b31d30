// What cuBLASLt does with a product before it stores it; the kinds and the limits are those that
// cublasLt.h describes.
#pragma once

#include "tests/cuda_emulation/matrix.h"

namespace gs::cuda_emulation {

struct Epilogue {
  uint32_t kind = 1;  // a cublasLtEpilogue_t
  void* bias = nullptr;
  int32_t bias_type = -1;  // a cudaDataType; -1: that of D
  int64_t bias_batch_stride = 0;
  void* aux = nullptr;
  int32_t aux_type = -1;
  int64_t aux_stride = 0, aux_batch_stride = 0;

  // Null, or what is wrong for a result of so many rows.
  const char* wrong(int64_t rows) const;
  // Stops the program if the bias or the auxiliary matrix is not in device memory.
  void check_places(const Product& product, int64_t batch_count) const;
  // The product with matrices number `batch`, and the epilogue.
  void multiply(Product product, int64_t batch) const;
};

}  // namespace gs::cuda_emulation
