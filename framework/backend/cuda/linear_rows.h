#pragma once

#include "framework/backend/linear.h"

namespace gs::backend {

// linear over rows that lie somewhere in device memory, all of one type; y is aligned to 32 bytes,
// and the bias may be null.
struct LinearRows {
  void* y;             // (rows, out)
  const void *x,       // (rows, in)
      *weight, *bias;  // (out, in), (out)
  int64_t rows, in, out;
  DType dtype;
};
void linear_rows(Cuda device, const LinearRows& rows, const LinearFinish& finish);

}  // namespace gs::backend
