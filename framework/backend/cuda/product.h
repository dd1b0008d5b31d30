#pragma once

#include "framework/backend/gemm.h"

namespace gs::backend {

// A product as cuBLASLt takes it: C = op(A) op(B), or `count` of them, each `step` elements behind
// the last. The epilogue adds bias j to column j, then does ReLU. Sizes are at least 1.
struct Product {
  GemmSizes sizes;
  DType in, out;
  int64_t count = 1, a_step = 0, b_step = 0, c_step = 0;
  bool bias = false, relu = false;  // only with beta = 0
};

// Starts a product on the device. The algorithm depends on the product, on how the matrices are
// aligned and on use_tf32 alone. False where the library has none with this epilogue (or one that
// loses NaN in ReLU); C may then have been written. An error names `operation`, sizes, file and
// line.
bool multiply(Cuda device, const char* operation, const Product& product, const void* a,
              const void* b, void* c, const void* bias = nullptr);

}  // namespace gs::backend
