#include "framework/backend/dropout.h"

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/random_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// Elements first to last - 1. The words of a piece stay in the first-level cache.
template <typename T>
void drop(T* y, const T* x, const DropoutMask& mask, int64_t first, int64_t last) {
  constexpr int64_t kPiece = 1024;
  HWY_ALIGN uint32_t buffer[kPiece + kRandomWordsSlack];
  // Both fit into 25 bits: a signed comparison, which every instruction set has.
  const int32_t threshold = static_cast<int32_t>(mask.threshold);
  const T scale = static_cast<T>(mask.scale);
  for (int64_t i = first; i < last; i += kPiece) {
    const int64_t count = HWY_MIN(kPiece, last - i);
    const uint32_t* const words = random_words(mask.stream, i, count, buffer);
    for (int64_t j = 0; j < count; ++j)
      y[i + j] = static_cast<int32_t>(words[j] >> 8) >= threshold ? x[i + j] * scale : T{0};
  }
}

void drop_float(float* y, const float* x, const DropoutMask& mask, int64_t first, int64_t last) {
  drop(y, x, mask, first, last);
}
void drop_double(double* y, const double* x, const DropoutMask& mask, int64_t first, int64_t last) {
  drop(y, x, mask, first, last);
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
