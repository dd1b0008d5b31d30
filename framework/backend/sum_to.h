#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// y = x summed over the dimensions that y, aligned at the last one, lacks or has as 1: the gradient
// of a broadcast operand; of bfloat16 y may be float32. The same result for any number of threads.
void sum_to(Cpu, Array& y, const Array& x);
void sum_to(Cuda, Array& y, const Array& x);

}  // namespace gs::backend
