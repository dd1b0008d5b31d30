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

void drop_float(float* y, const float* x, const DropoutMask& mask, int64_t first, int64_t last) {
  drop(y + first, x + first, mask, first, last - first);
}
void drop_double(double* y, const double* x, const DropoutMask& mask, int64_t first, int64_t last) {
  drop(y + first, x + first, mask, first, last - first);
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {

HWY_EXPORT(drop_float);
HWY_EXPORT(drop_double);

void dropout(Cpu, Array& y, const Array& x, const DropoutMask& mask) {
  constexpr int64_t kGrain = 1 << 14;
  parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
    if (x.dtype() == kFloat32) {
      HWY_DYNAMIC_DISPATCH(drop_float)(y.data<float>(), x.data<float>(), mask, first, last);
    } else {
      HWY_DYNAMIC_DISPATCH(drop_double)(y.data<double>(), x.data<double>(), mask, first, last);
    }
  });
}

}  // namespace gs::backend
#endif
