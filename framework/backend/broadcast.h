#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// y = x repeated along the dimensions that x, aligned at the last one, lacks or has as 1, times
// `factor`, which is for floating types. The gradient of a sum.
void broadcast(Cpu, Array& y, const Array& x, double factor = 1);
void broadcast(Cuda, Array& y, const Array& x, double factor = 1);

}  // namespace gs::backend
