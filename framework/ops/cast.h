#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// x in another element type; x itself if it has that type. Numbers turn to bool as "is not zero",
// to int32 towards zero, clamped to its range, NaN to 0. Between floating types the gradient is
// cast back; on the CPU bfloat16 has none and is refused where one is needed.
Tensor cast(const Tensor& x, DType dtype);

}  // namespace gs
