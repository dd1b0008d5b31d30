#pragma once

#include "framework/backend/array.h"
#include "framework/backend/dropout_mask.h"

namespace gs::backend {

// What is done to each element of a product while it is at hand: ReLU, then dropout of element i.
struct LinearFinish {
  bool relu = false;
  DropoutMask dropout;  // threshold 0: none
};

// y (N, out) = finish(x (N, in) weight (out, in)^T + bias (out)); the bias may be undefined.
void linear(Cpu, Array& y, const Array& x, const Array& weight, const Array& bias,
            const LinearFinish& finish);
void linear(Cuda, Array& y, const Array& x, const Array& weight, const Array& bias,
            const LinearFinish& finish);

// The gradient of the product below a finish with ReLU: dproduct = dy * scale where y is not 0 (or
// less), else 0. What dropout has dropped is 0 in y.
void linear_relu_backward(Cpu, Array& dproduct, const Array& dy, const Array& y, double scale);
void linear_relu_backward(Cuda, Array& dproduct, const Array& dy, const Array& y, double scale);

}  // namespace gs::backend
