#pragma once

#include <cstdint>

#include "framework/core/dtype.h"

namespace gs::backend {

// Calls `function` with an unsigned number as wide as the elements: for what only moves them.
template <typename Function>
void dispatch_element_size(DType dtype, Function&& function) {
  switch (size_of(dtype)) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    default:
      return function(uint64_t{});
  }
}

}  // namespace gs::backend
