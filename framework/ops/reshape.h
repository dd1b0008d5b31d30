#pragma once

#include <initializer_list>
#include <span>

#include "framework/tensor/tensor.h"

namespace gs {

// The same elements in the same order under another shape. The result shares x's memory: a change
// in place is seen through both. One size may be -1 and is worked out from the others, unless one
// of these is 0 and any size would do.
Tensor reshape(const Tensor& x, std::span<const int64_t> sizes);
Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes);

// All sizes of 1 dropped, or the one named, which must be 1.
Tensor squeeze(const Tensor& x);
Tensor squeeze(const Tensor& x, int64_t dimension);

// A size of 1 put in so that it becomes dimension `dimension`, -1 being the last of the result.
Tensor unsqueeze(const Tensor& x, int64_t dimension);

// The dimensions `first` to `last` joined into one; a scalar becomes (1).
Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1);

}  // namespace gs
