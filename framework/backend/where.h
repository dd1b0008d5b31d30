#pragma once

#include "framework/backend/operand.h"

namespace gs::backend {

// y = a where the bool condition holds, else b, at the shape of y; of any type that computes.
// What is not chosen has no influence, NaN and infinity included.
void where(Cpu, Array& y, const Array& condition, const Operand& a, const Operand& b);
void where(Cuda, Array& y, const Array& condition, const Operand& a, const Operand& b);

}  // namespace gs::backend
