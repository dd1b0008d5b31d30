#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// y = x * factor. y may be x.
void scale(Cpu, Array& y, const Array& x, double factor);
void scale(Cuda, Array& y, const Array& x, double factor);

// The same with a factor of one floating element on the device, which is not waited for.
void scale_by(Cpu, Array& y, const Array& x, const Array& factor);
void scale_by(Cuda, Array& y, const Array& x, const Array& factor);

// y = x / count, 0 where the count is 0: one float64 on the device.
void average(Cpu, Array& y, const Array& x, const Array& count);
void average(Cuda, Array& y, const Array& x, const Array& count);

}  // namespace gs::backend
