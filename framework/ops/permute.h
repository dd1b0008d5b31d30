#pragma once

#include <initializer_list>
#include <span>

#include "framework/tensor/tensor.h"

namespace gs {

// The dimensions in another order: dimension d of the result is dimension order[d] of x, which may
// count from the end. Each dimension is named once. Always a copy: the result shares no memory.
Tensor permute(const Tensor& x, std::span<const int64_t> order);
Tensor permute(const Tensor& x, std::initializer_list<int64_t> order);

// Two dimensions exchanged, the last two unless told otherwise. A copy.
Tensor transpose(const Tensor& x, int64_t first = -2, int64_t second = -1);

}  // namespace gs
