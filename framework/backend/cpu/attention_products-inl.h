// The small matrix products of attention, compiled once for each instruction set: include after
// highway.h. Operands are parts of larger row-major matrices. An element's sum is formed in the
// same order wherever it stands, so results do not depend on neighbours or padding.
#if defined(GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#undef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#else
#define GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "framework/backend/cpu/attention_heads.h"
#include "framework/backend/cpu/lanes-inl.h"
#include "framework/backend/cpu/random_words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// A matrix whose rows are `stride` apart.
template <typename T>
struct Matrix {
  T* data;
  int64_t stride;

  T* row(int64_t i) const { return data + i * stride; }
};

// The columns of one head, `width` wide, in the rows of x from `row` on.
template <typename T>
HWY_INLINE Matrix<T> part_of(T* x, int64_t row, const AttentionHead& head, int64_t width) {
  return {x + (row * head.heads + head.head) * width, head.heads * width};
}

// The sums of the lanes of four vectors, times `factor`, to the first `count` places of y.
template <class D, class V, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store_sums(D d, V a0, V a1, V a2, V a3, T factor, T* y, int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  HWY_ALIGN T sums[4];
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if constexpr (sizeof(T) == 4) {
    // Within each block of four lanes: transpose and add, until lane i holds vector i.
    const hn::Repartition<double, D> dd;
    const auto pair = [&](V a, V b) HWY_ATTR {
      return hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    const auto a01 = pair(a0, a1), a23 = pair(a2, a3);
    const auto blocks = hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, a01, a23)),
                                hn::BitCast(d, hn::InterleaveUpper(dd, a01, a23)));
    const hn::FixedTag<T, 4> d4;
    const auto fold = [](auto self, auto tag, auto value) HWY_ATTR {
      if constexpr (hn::MaxLanes(decltype(tag)()) == 4) {
        return value;
      } else {
        const hn::Half<decltype(tag)> half;
        return self(self, half, hn::Add(hn::LowerHalf(half, value), hn::UpperHalf(half, value)));
      }
    };
    const auto total = hn::Mul(fold(fold, d, blocks), hn::Set(d4, factor));
    if (count >= 4) {
      hn::StoreU(total, d4, y);
      return;
    }
    hn::Store(total, d4, sums);
    std::copy_n(sums, count, y);
    return;
  }
#endif
  sums[0] = sum_of(d, a0) * factor;
  sums[1] = sum_of(d, a1) * factor;
  sums[2] = sum_of(d, a2) * factor;
  sums[3] = sum_of(d, a3) * factor;
  std::copy_n(sums, std::min<int64_t>(count, 4), y);
}

// y[i][j] = factor * the sum over c < width of a[i][c] * b[j][c], for i < rows, j < columns.
// `columns(i)` does not fall with i; places beyond it in a row may be written, up to the columns
// of the next row.
template <typename T, typename Columns>
HWY_INLINE void multiply_rows(Matrix<T> y, Matrix<const T> a, Matrix<const T> b, int64_t rows,
                              int64_t width, T factor, const Columns& columns) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<T> d;
  for (int64_t i = 0; i < rows; i += 2) {
    const int64_t next = std::min(i + 1, rows - 1);
    const T* const a0 = a.row(i);
    const T* const a1 = a.row(next);
    const int64_t count = columns(next);
    for (int64_t j = 0; j < count; j += 4) {
      // Beyond the last row of b it is read again and the result left out.
      const T* const b0 = b.row(j);
      const T* const b1 = b.row(std::min(j + 1, count - 1));
      const T* const b2 = b.row(std::min(j + 2, count - 1));
      const T* const b3 = b.row(std::min(j + 3, count - 1));
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
      for_each_vector(d, width, [&](auto at) HWY_ATTR {
        const auto x0 = load(d, a0, at), x1 = load(d, a1, at);
        const auto z0 = load(d, b0, at), z1 = load(d, b1, at);
        const auto z2 = load(d, b2, at), z3 = load(d, b3, at);
        s0 = hn::MulAdd(x0, z0, s0);
        s1 = hn::MulAdd(x0, z1, s1);
        s2 = hn::MulAdd(x0, z2, s2);
        s3 = hn::MulAdd(x0, z3, s3);
        t0 = hn::MulAdd(x1, z0, t0);
        t1 = hn::MulAdd(x1, z1, t1);
        t2 = hn::MulAdd(x1, z2, t2);
        t3 = hn::MulAdd(x1, z3, t3);
      });
      store_sums(d, s0, s1, s2, s3, factor, y.row(i) + j, count - j);
      if (next != i) store_sums(d, t0, t1, t2, t3, factor, y.row(next) + j, count - j);
    }
  }
}

// The coefficient of row i and term k stands at data[i * row_stride + k * term_stride].
template <typename T>
struct Coefficients {
  const T* data;
  int64_t row_stride, term_stride;

  const T* row(int64_t i) const { return data + i * row_stride; }
};

// The terms from `first` on, before `last`.
struct Terms {
  int64_t first, last;
};

// y[i][c] = the sum over terms k of coefficient(i, k) * x[k][c], in one vector of columns, for the
// four rows from `start` on; beyond the last row it is repeated. Terms of even and odd distance
// from the first are summed apart, which halves the wait for the sums. With kHide what meets a
// coefficient of 0 is taken as 0; without, nothing is stored and false returned where a sum is not
// finite.
template <bool kHide, class D, class Place, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE bool combine_vector(D d, Matrix<T> y, Coefficients<T> coefficients, Matrix<const T> x,
                               Terms terms, int64_t start, int64_t rows, Place at) {
  namespace hn = hwy::HWY_NAMESPACE;
  const int64_t i1 = std::min(start + 1, rows - 1), i2 = std::min(start + 2, rows - 1),
                i3 = std::min(start + 3, rows - 1);
  const T* const c0 = coefficients.row(start);
  const T* const c1 = coefficients.row(i1);
  const T* const c2 = coefficients.row(i2);
  const T* const c3 = coefficients.row(i3);
  const int64_t step = coefficients.term_stride;
  const auto zero = hn::Zero(d);
  const auto add = [&](const T* c, auto value, auto sum) HWY_ATTR {
    const auto factor = hn::Set(d, *c);
    if constexpr (kHide) value = hn::IfThenElse(hn::Eq(factor, zero), zero, value);
    return hn::MulAdd(factor, value, sum);
  };
  auto s0 = zero, s1 = zero, s2 = zero, s3 = zero, t0 = zero, t1 = zero, t2 = zero, t3 = zero;
  int64_t k = terms.first;
  for (; k + 2 <= terms.last; k += 2) {
    const auto even = load(d, x.row(k), at), odd = load(d, x.row(k + 1), at);
    const int64_t i = k * step, j = i + step;
    s0 = add(c0 + i, even, s0);
    s1 = add(c1 + i, even, s1);
    s2 = add(c2 + i, even, s2);
    s3 = add(c3 + i, even, s3);
    t0 = add(c0 + j, odd, t0);
    t1 = add(c1 + j, odd, t1);
    t2 = add(c2 + j, odd, t2);
    t3 = add(c3 + j, odd, t3);
  }
  if (k < terms.last) {
    const auto even = load(d, x.row(k), at);
    const int64_t i = k * step;
    s0 = add(c0 + i, even, s0);
    s1 = add(c1 + i, even, s1);
    s2 = add(c2 + i, even, s2);
    s3 = add(c3 + i, even, s3);
  }
  s0 = hn::Add(s0, t0);
  s1 = hn::Add(s1, t1);
  s2 = hn::Add(s2, t2);
  s3 = hn::Add(s3, t3);
  if constexpr (!kHide) {
    const auto products =
        hn::MulAdd(s0, zero, hn::MulAdd(s1, zero, hn::MulAdd(s2, zero, hn::Mul(s3, zero))));
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(products, zero)))) return false;
  }
  store(d, s3, y.row(i3), at);
  store(d, s2, y.row(i2), at);
  store(d, s1, y.row(i1), at);
  store(d, s0, y.row(start), at);
  return true;
}

// y[i][c] = the sum over k in terms(i, last row) of coefficient(i, k) * x[k][c], for i < rows,
// c < width. `terms(first row, last row)` are those that any of these rows has.
template <typename T, typename TermsOf>
HWY_INLINE void combine_rows(Matrix<T> y, Coefficients<T> coefficients, Matrix<const T> x,
                             int64_t rows, int64_t width, const TermsOf& terms_of) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  for (int64_t start = 0; start < rows; start += 4) {
    const Terms terms = terms_of(start, std::min(start + 3, rows - 1));
    for_each_vector(d, width, [&](auto at) HWY_ATTR {
      // 0 * infinity and 0 * NaN are NaN, but a weight of 0 must hide what it meets.
      if (!combine_vector<false>(d, y, coefficients, x, terms, start, rows, at))
        combine_vector<true>(d, y, coefficients, x, terms, start, rows, at);
    });
  }
}

// How far apart rows of `width` stand in scratch memory: whole vectors. A part of a vector that was
// stored would have to reach the cache before its elements can be read.
template <typename T>
HWY_INLINE int64_t padded(int64_t width) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  return (width + lanes - 1) / lanes * lanes;
}

// The whole vector at a place.
HWY_INLINE Whole whole(Whole at) { return at; }
HWY_INLINE Whole whole(Part at) { return {at.start}; }

// Applies dropout to a head's weights, or to their gradient, in place.
template <typename T>
void drop_weights(Matrix<T> x, const AttentionHead& head, const DropoutMask& mask) {
  const int64_t width = head.sequence.weights_width, count = head.sequence.queries * width;
  const uint32_t* words = random_words(mask.stream, head.weights_start(), count,
                                       attention_scratch<uint32_t, 2>(count + kRandomWordsSlack));
  const int32_t threshold = static_cast<int32_t>(mask.threshold);
  const T scale = static_cast<T>(mask.scale);
  for (int64_t i = 0; i < head.sequence.queries; ++i, words += width) {
    T* const row = x.row(i);
    for (int64_t j = 0; j < width; ++j)
      row[j] = static_cast<int32_t>(words[j] >> 8) >= threshold ? row[j] * scale : T{0};
  }
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
