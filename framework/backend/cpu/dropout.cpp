#include "framework/backend/dropout.h"

#include <type_traits>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/random_words-inl.h"

// Bound by the arithmetic of the random numbers: ten rounds of two products for four of them.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// y = x * scale where the upper 24 bits of the word reach the threshold, else 0. Both fit into 25
// bits: a signed comparison, which every instruction set has.
template <typename T>
void drop_words(T* y, const T* x, const uint32_t* words, int32_t threshold, T scale,
                int64_t count) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const hn::ScalableTag<float> d;
    const hn::ScalableTag<uint32_t> d_words;
    const hn::ScalableTag<int32_t> d_signed;
    const auto dropped = hn::Set(d_signed, threshold - 1);
    const auto factor = hn::Set(d, scale);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
    for (; i + lanes <= count; i += lanes) {
      const auto word = hn::ShiftRight<8>(hn::LoadU(d_words, words + i));
      const auto kept = hn::RebindMask(d, hn::Gt(hn::BitCast(d_signed, word), dropped));
      hn::StoreU(hn::IfThenElseZero(kept, hn::Mul(hn::LoadU(d, x + i), factor)), d, y + i);
    }
  }
  for (; i < count; ++i)
    y[i] = static_cast<int32_t>(words[i] >> 8) >= threshold ? x[i] * scale : T{0};
}

// Elements first to last - 1. The words of a piece stay in the first-level cache.
template <typename T>
void drop(T* y, const T* x, const DropoutMask& mask, int64_t first, int64_t last) {
  constexpr int64_t kPiece = 1024;
  HWY_ALIGN uint32_t buffer[kPiece + kRandomWordsSlack];
  for (int64_t i = first; i < last; i += kPiece) {
    const int64_t count = HWY_MIN(kPiece, last - i);
    const uint32_t* const words = random_words(mask.stream, i, count, buffer);
    drop_words(y + i, x + i, words, static_cast<int32_t>(mask.threshold),
               static_cast<T>(mask.scale), count);
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
