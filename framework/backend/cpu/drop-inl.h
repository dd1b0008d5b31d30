// Dropout of a range, compiled once for each instruction set: include after highway.h.
#if defined(GS_BACKEND_CPU_DROP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_DROP_INL_H_
#undef GS_BACKEND_CPU_DROP_INL_H_
#else
#define GS_BACKEND_CPU_DROP_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "framework/backend/cpu/random_words-inl.h"
#include "framework/backend/dropout_mask.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// y = x * scale where the upper 24 bits of the word reach the threshold, else 0. Both fit into 25
// bits: a signed comparison, which every instruction set has.
template <typename T>
void drop_words(T* y, const T* x, const uint32_t* words, int32_t threshold, T scale,
                int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
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

// y[i] = x[i] * mask.scale where the mask keeps element first + i, else 0, for i < count; y may be
// x. The words of a piece stay in the first-level cache.
template <typename T>
void drop(T* y, const T* x, const DropoutMask& mask, int64_t first, int64_t count) {
  constexpr int64_t kPiece = 1024;
  HWY_ALIGN uint32_t buffer[kPiece + kRandomWordsSlack];
  for (int64_t i = 0; i < count; i += kPiece) {
    const int64_t piece = HWY_MIN(kPiece, count - i);
    const uint32_t* const words = random_words(mask.stream, first + i, piece, buffer);
    drop_words(y + i, x + i, words, static_cast<int32_t>(mask.threshold),
               static_cast<T>(mask.scale), piece);
  }
}

// y = x + the same of branch.
template <typename T>
void add_dropped(T* HWY_RESTRICT y, const T* HWY_RESTRICT x, const T* HWY_RESTRICT branch,
                 const DropoutMask& mask, int64_t first, int64_t count) {
  if (mask.threshold == 0) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[i] + branch[i];
    return;
  }
  constexpr int64_t kPiece = 1024;
  for (int64_t start = 0; start < count; start += kPiece) {
    const int64_t end = start + HWY_MIN(kPiece, count - start);
    drop(y + start, branch + start, mask, first + start, end - start);
    for (int64_t i = start; i < end; ++i) y[i] += x[i];
  }
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
