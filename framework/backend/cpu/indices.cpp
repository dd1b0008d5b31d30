#include "framework/backend/indices.h"

#include <algorithm>

namespace gs::backend {
namespace {

// Positions looked at together: without an early exit inside, the loop vectorises.
constexpr int64_t kBlock = 1024;

}  // namespace

int64_t first_outside(Cpu, const Array& indices, int64_t size, std::optional<int64_t> allowed) {
  const int32_t* const index = indices.data<int32_t>();
  const int64_t count = indices.elements();
  const IsOutside outside(size, allowed);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(count, first + kBlock);
    bool found = false;
    for (int64_t i = first; i < last; ++i) found |= outside(index[i]);
    if (found) return std::find_if(index + first, index + last, outside) - index;
  }
  return -1;
}

}  // namespace gs::backend
