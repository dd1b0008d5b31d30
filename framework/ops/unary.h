#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Functions of each element, for float32 and float64 of any shape. NaN stays NaN.
Tensor negate(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);    // NaN below 0
Tensor sqrt(const Tensor& x);   // NaN below 0; an infinite gradient at 0
Tensor rsqrt(const Tensor& x);  // 1 / sqrt(x)
Tensor abs(const Tensor& x);    // gradient 0 at 0
Tensor square(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor sigmoid(const Tensor& x);

Tensor relu(const Tensor& x);       // max(x, 0), with gradient 0 at 0
Tensor gelu(const Tensor& x);       // x Phi(x), with the exact normal distribution
Tensor gelu_tanh(const Tensor& x);  // the same with its approximation by tanh
Tensor silu(const Tensor& x);       // x sigmoid(x)

// x held between the limits, which may be infinite. The gradient is that of x from `low` to `high`,
// the limits included, and 0 outside.
Tensor clamp(const Tensor& x, double low, double high);

}  // namespace gs
