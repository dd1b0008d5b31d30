#include "framework/backend/operand.h"

namespace gs::backend {

OperandLayout::OperandLayout(const Shape& from, const Shape& to) {
  // Collected from the innermost dimension outwards, then turned round.
  int merged = 0;
  int64_t step = 1;
  for (int d = to.rank() - 1; d >= 0; --d) {
    const int source = d - (to.rank() - from.rank());
    const int64_t size = source < 0 ? 1 : from[source];
    const int64_t stride = size == 1 ? 0 : step;
    step *= size;
    if (to[d] == 1) continue;
    const size_t last = static_cast<size_t>(merged - 1);
    if (merged > 0 && stride == strides[last] * sizes[last]) {
      sizes[last] *= to[d];
      continue;
    }
    sizes[static_cast<size_t>(merged)] = to[d];
    strides[static_cast<size_t>(merged)] = stride;
    ++merged;
  }
  if (merged == 0) {
    strides[0] = 0;
    return;
  }
  rank = merged;
  std::reverse(sizes.begin(), sizes.begin() + rank);
  std::reverse(strides.begin(), strides.begin() + rank);
}

}  // namespace gs::backend
