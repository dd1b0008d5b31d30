#pragma once

#include "framework/ops/unary.h"
#include "framework/tensor/tensor.h"

namespace gs {

// Arithmetic element by element. Two tensors broadcast by NumPy's rule and must have the same type
// and device; a number takes the tensor's type. float32, float64, and but for divide and pow int32,
// which wraps around. Gradients have the shapes of the operands.
Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor add(double a, const Tensor& b);

Tensor subtract(const Tensor& a, const Tensor& b);
Tensor subtract(const Tensor& a, double b);
Tensor subtract(double a, const Tensor& b);

Tensor multiply(const Tensor& a, const Tensor& b);
Tensor multiply(const Tensor& a, double b);
Tensor multiply(double a, const Tensor& b);

Tensor divide(const Tensor& a, const Tensor& b);
Tensor divide(const Tensor& a, double b);
Tensor divide(double a, const Tensor& b);

// a^b as std::pow. Gradients of b = 0 for a, and of a = 0 for b >= 0, are 0.
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, double b);
Tensor pow(double a, const Tensor& b);

// The larger or smaller, NaN where one is NaN. Equal operands get half of the gradient each.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, double b);
Tensor maximum(double a, const Tensor& b);

Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, double b);
Tensor minimum(double a, const Tensor& b);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return subtract(a, b); }
inline Tensor operator-(double a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return multiply(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return divide(a, b); }
inline Tensor operator/(double a, const Tensor& b) { return divide(a, b); }
inline Tensor operator-(const Tensor& x) { return negate(x); }

}  // namespace gs
