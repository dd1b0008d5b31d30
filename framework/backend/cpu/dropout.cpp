#include "framework/backend/dropout.h"

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/drop-inl.h"

// Bound by the arithmetic of the random numbers: ten rounds of two products for four of them.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

void drop_range(Array& y, const Array& x, const DropoutMask& mask, int64_t first, int64_t last) {
  dispatch_floating("dropout", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    drop(y.data<T>() + first, x.data<T>() + first, mask, first, last - first);
  });
}

void add_dropped_range(Array& y, const Array& x, const Array& branch, const DropoutMask& mask,
                       int64_t first, int64_t last) {
  dispatch_floating("residual", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    add_dropped(y.data<T>() + first, x.data<T>() + first, branch.data<T>() + first, mask, first,
                last - first);
  });
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {

HWY_EXPORT(drop_range);
HWY_EXPORT(add_dropped_range);

constexpr int64_t kGrain = 1 << 14;

void dropout(Cpu, Array& y, const Array& x, const DropoutMask& mask) {
  parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(drop_range)(y, x, mask, first, last);
  });
}

void residual(Cpu, Array& y, const Array& x, const Array& branch, const DropoutMask& mask) {
  parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(add_dropped_range)(y, x, branch, mask, first, last);
  });
}

}  // namespace gs::backend
#endif
