#pragma once

#include "framework/backend/array.h"
#include "framework/backend/dropout_mask.h"

namespace gs::backend {

// y[i] = x[i] * mask.scale where the mask keeps element i, else 0 (whatever x[i] is). The gradient
// has the same form. y may be x.
void dropout(Cpu, Array& y, const Array& x, const DropoutMask& mask);
void dropout(Cuda, Array& y, const Array& x, const DropoutMask& mask);

// y = x + dropout(branch)
void residual(Cpu, Array& y, const Array& x, const Array& branch, const DropoutMask& mask);
void residual(Cuda, Array& y, const Array& x, const Array& branch, const DropoutMask& mask);

}  // namespace gs::backend
