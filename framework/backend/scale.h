#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// y = x * factor. y may be x.
void scale(Cpu, Array& y, const Array& x, double factor);
void scale(Cuda, Array& y, const Array& x, double factor);

}  // namespace gs::backend
