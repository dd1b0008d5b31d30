#include "framework/backend/where.h"

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/where.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Bound by memory: each operand is read once.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void choose_tile(T* y, const bool* chosen, const T* a, const T* b, int64_t count) {
  int64_t i = 0;
  if constexpr (sizeof(T) == sizeof(int32_t)) {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> d_wide;
    const hn::Rebind<uint8_t, decltype(d)> d_bool;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) {
      const auto flags = hn::LoadU(d_bool, reinterpret_cast<const uint8_t*>(chosen + i));
      const auto wide = hn::PromoteTo(d_wide, flags);
      const auto mask = hn::RebindMask(d, hn::Ne(wide, hn::Zero(d_wide)));
      hn::StoreU(hn::IfThenElse(mask, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
    }
  }
  for (; i < count; ++i) y[i] = chosen[i] ? a[i] : b[i];
}

void choose(Array& y, const Array& condition, const Operand& a, const Operand& b, int64_t first,
            int64_t last) {
  dispatch_any("where", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr int64_t kTile = TileReader<T>::kTile;
    TileReader<bool> condition_reader(condition, y.shape(), first);
    TileReader<T> a_reader(a, y.shape(), first), b_reader(b, y.shape(), first);
    for (int64_t start = first; start < last; start += kTile) {
      const int64_t count = HWY_MIN(kTile, last - start);
      const bool* const chosen = condition_reader.next(count);
      const T *const a_tile = a_reader.next(count), *const b_tile = b_reader.next(count);
      choose_tile(y.data<T>() + start, chosen, a_tile, b_tile, count);
    }
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(choose);

}  // namespace

void where(Cpu, Array& y, const Array& condition, const Operand& a, const Operand& b) {
  constexpr int64_t kGrain = 1 << 15;
  if (y.elements() == 0) return;
  parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(choose)(y, condition, a, b, first, last);
  });
}

}  // namespace gs::backend
#endif
