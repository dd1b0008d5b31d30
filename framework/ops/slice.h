#pragma once

#include <limits>

#include "framework/tensor/tensor.h"

namespace gs {

// As the end of a slice: up to the last element.
inline constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// The elements start, start + step, ... before `end` of one dimension. Negative numbers count from
// the end; what lies outside of the dimension, a start after the end and a step below 1 are
// refused. Always a copy: the result shares no memory.
Tensor slice(const Tensor& x, int64_t dimension, int64_t start, int64_t end = kEnd,
             int64_t step = 1);

}  // namespace gs
