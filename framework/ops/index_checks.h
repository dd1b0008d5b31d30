#pragma once

#include "framework/backend/indices.h"
#include "framework/tensor/tensor.h"

namespace gs {

// Refuses indices that are not int32, lie on another device or name a place outside 0..size - 1;
// the message gives the first such index and its position.
inline void check_indices(const char* operation, const Tensor& indices, int64_t size,
                          Device device) {
  check(indices.dtype() == kInt32, "{}: indices must be int32, got {}; cast them", operation,
        indices.dtype());
  check(indices.device() == device, "{}: indices must be on {}, got {}; move them", operation,
        device, indices.device());
  const int64_t position =
      on_device(device, [&](auto on) { return backend::first_outside(on, indices.value(), size); });
  if (position < 0) return;
  fail("{}: index {} at position {} is outside 0..{}", operation,
       indices.values<int32_t>()[static_cast<size_t>(position)], position, size - 1);
}

}  // namespace gs
