#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

struct MatmulOptions {
  bool transpose_a = false;  // a is (..., K, M) instead of (..., M, K)
  bool transpose_b = false;  // b is (..., N, K) instead of (..., K, N)
};

// The product of the last two dimensions: (..., M, K) x (..., K, N) -> (..., M, N). The dimensions
// before them broadcast. Transposed operands are read in place. K = 0 gives zeros.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

}  // namespace gs
