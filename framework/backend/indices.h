#pragma once

#include <optional>

#include "framework/backend/array.h"

namespace gs::backend {

// The position of the first element of int32 `indices` that is outside 0..size - 1 and is not
// `allowed`, or -1.
int64_t first_outside(Cpu, const Array& indices, int64_t size,
                      std::optional<int64_t> allowed = std::nullopt);
int64_t first_outside(Cuda, const Array& indices, int64_t size,
                      std::optional<int64_t> allowed = std::nullopt);

}  // namespace gs::backend
