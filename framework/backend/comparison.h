#pragma once

#include "framework/backend/operand.h"

namespace gs::backend {

enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

// y = whether a stands in that relation to b, as bool at the shape of y. Both are of type `dtype`,
// any that computes; false < true. With NaN only kNotEqual holds.
void compare(Cpu, Comparison comparison, Array& y, const Operand& a, const Operand& b, DType dtype);
void compare(Cuda, Comparison comparison, Array& y, const Operand& a, const Operand& b,
             DType dtype);

enum class Logical { kAnd, kOr, kXor };

// y = a operation b; all bool, at the shape of y.
void logical(Cpu, Logical operation, Array& y, const Operand& a, const Operand& b);
void logical(Cuda, Logical operation, Array& y, const Operand& a, const Operand& b);

}  // namespace gs::backend
