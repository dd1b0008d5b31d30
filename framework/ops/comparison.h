#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Comparisons element by element; the result is bool. Two tensors broadcast by NumPy's rule and
// must have the same type and device; a number is rounded to the tensor's type first. With NaN
// only not_equal holds. There is no gradient.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& a, double b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, double b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, double b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, double b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, double b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, double b);

// Of bool tensors, which broadcast as well; other types are refused: compare them with 0.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_xor(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);

}  // namespace gs
