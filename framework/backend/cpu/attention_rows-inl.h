// What the rows of weights need forward and backward: sums and maxima of many rows at once,
// dropout. Compiled once for each instruction set: include after highway.h.
#if defined(GS_BACKEND_CPU_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#undef GS_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#else
#define GS_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "framework/backend/cpu/attention_heads.h"
#include "framework/backend/cpu/lanes-inl.h"
#include "framework/backend/cpu/random_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// The whole vector at a place.
HWY_INLINE Whole whole(Whole at) { return at; }
HWY_INLINE Whole whole(Part at) { return {at.start}; }

// The value with `filler` in the lanes beyond a Part.
template <class D, class V>
HWY_INLINE V inside_or(D, V value, Whole, V) {
  return value;
}
template <class D, class V>
HWY_INLINE V inside_or(D d, V value, Part place, V filler) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(place.count)), value, filler);
}

// The lanes of a vector of a row that come before element `count`.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Mask<D> before(D d, Whole at, int64_t count) {
  return hwy::HWY_NAMESPACE::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, count - at.start)));
}

// Room for one vector of each of some rows, to be folded together.
inline constexpr int64_t kFoldedRows = 48;

// y[i] = the fold over the lanes of x[i * lanes ...], a vector each of `rows` rows: op(a, b) folds
// two vectors, fold(a) the lanes of one. Always in the same order.
template <class D, typename T, class Op, class Fold>
HWY_INLINE void fold_lanes(D d, const T* x, int64_t rows, T* y, [[maybe_unused]] Op op, Fold fold) {
  namespace hn = hwy::HWY_NAMESPACE;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    // Within each block of four lanes: transpose and fold, until lane i holds row i.
    const hn::Repartition<double, D> dd;
    const auto pair = [&](auto a, auto b) HWY_ATTR {
      return hn::BitCast(dd, op(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    const auto halve = [&](auto self, auto tag, auto value) HWY_ATTR {
      if constexpr (hn::MaxLanes(decltype(tag)()) == 4) {
        return value;
      } else {
        const hn::Half<decltype(tag)> half;
        return self(self, half, op(hn::LowerHalf(half, value), hn::UpperHalf(half, value)));
      }
    };
    for (int64_t i = 0; i < rows; i += 4) {
      const auto row = [&](int64_t r)
                           HWY_ATTR { return hn::LoadU(d, x + std::min(i + r, rows - 1) * lanes); };
      const auto a01 = pair(row(0), row(1)), a23 = pair(row(2), row(3));
      const auto blocks = op(hn::BitCast(d, hn::InterleaveLower(dd, a01, a23)),
                             hn::BitCast(d, hn::InterleaveUpper(dd, a01, a23)));
      hn::StoreU(halve(halve, d, blocks), hn::FixedTag<T, 4>(), y + i);
    }
    return;
  }
#endif
  for (int64_t i = 0; i < rows; ++i) y[i] = fold(hn::LoadU(d, x + i * lanes));
}

// The sums, or the largest, of the lanes of each row's vector.
template <class D, typename T>
HWY_INLINE void sum_lanes(D d, const T* x, int64_t rows, T* y) {
  namespace hn = hwy::HWY_NAMESPACE;
  fold_lanes(
      d, x, rows, y, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); },
      [&](auto a) HWY_ATTR { return sum_of(d, a); });
}
template <class D, typename T>
HWY_INLINE void max_lanes(D d, const T* x, int64_t rows, T* y) {
  namespace hn = hwy::HWY_NAMESPACE;
  fold_lanes(
      d, x, rows, y, [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
      [&](auto a) HWY_ATTR { return max_of(d, a); });
}

// What dropout makes of a head's weights: the factor of each, 0 or the scale.
template <typename T>
const T* dropout_factors(const AttentionHead& head, const DropoutMask& mask) {
  const int64_t count = head.sequence.queries * head.sequence.weights_width;
  const uint32_t* const words =
      random_words(mask.stream, head.weights_start(), count,
                   attention_scratch<uint32_t, 2>(count + kRandomWordsSlack));
  T* const factors = attention_scratch<T, 3>(count);
  const int32_t threshold = static_cast<int32_t>(mask.threshold);
  const T scale = static_cast<T>(mask.scale);
  for (int64_t i = 0; i < count; ++i)
    factors[i] = static_cast<int32_t>(words[i] >> 8) >= threshold ? scale : T{0};
  return factors;
}

// x * factor, where a factor of 0 hides even NaN.
template <class D, class V>
HWY_INLINE V drop(D d, V x, V factor) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElseZero(hn::Ne(factor, hn::Zero(d)), hn::Mul(x, factor));
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
