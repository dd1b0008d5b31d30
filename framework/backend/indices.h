#pragma once

#include <algorithm>
#include <optional>

#include "framework/backend/array.h"

namespace gs::backend {

// Whether an index is outside 0..size - 1 and is not `allowed`; on the CPU and in kernels.
class IsOutside {
 public:
  IsOutside(int64_t size, std::optional<int64_t> allowed)
      : limit_(static_cast<uint32_t>(std::min<int64_t>(size, int64_t{INT32_MAX} + 1))),
        exception_(allowed && *allowed >= INT32_MIN && *allowed <= INT32_MAX),
        passes_(exception_ ? static_cast<int32_t>(*allowed) : 0) {}

  constexpr bool operator()(int32_t value) const {
    // As unsigned numbers negative ones are beyond every limit.
    return (static_cast<uint32_t>(value) >= limit_) & !(exception_ & (value == passes_));
  }

 private:
  uint32_t limit_;
  bool exception_;
  int32_t passes_;
};

// The position of the first element of int32 `indices` that is outside 0..size - 1 and is not
// `allowed`, or -1.
int64_t first_outside(Cpu, const Array& indices, int64_t size,
                      std::optional<int64_t> allowed = std::nullopt);
int64_t first_outside(Cuda, const Array& indices, int64_t size,
                      std::optional<int64_t> allowed = std::nullopt);

}  // namespace gs::backend
