#include "framework/backend/where.h"

#include "framework/core/parallel.h"

namespace gs::backend {

void where(Cpu, Array& y, const Array& condition, const Operand& a, const Operand& b) {
  constexpr int64_t kGrain = 1 << 15;
  if (y.elements() == 0) return;
  dispatch_any("where", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kTile = TileReader<T>::kTile;
    T* const out = y.data<T>();
    parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
      TileReader<bool> condition_reader(condition, y.shape(), first);
      TileReader<T> a_reader(a, y.shape(), first), b_reader(b, y.shape(), first);
      for (int64_t start = first; start < last; start += kTile) {
        const int64_t count = std::min(kTile, last - start);
        const bool* const chosen = condition_reader.next(count);
        const T *const a_tile = a_reader.next(count), *const b_tile = b_reader.next(count);
        for (int64_t i = 0; i < count; ++i) out[start + i] = chosen[i] ? a_tile[i] : b_tile[i];
      }
    });
  });
}

}  // namespace gs::backend
