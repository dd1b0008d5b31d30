// The small matrix products of attention, compiled once for each instruction set: include after
// highway.h. Bound by arithmetic: rows times vectors of columns are summed in registers, term by
// term. So an element's sum is formed in the same order wherever it stands, and results do not
// depend on neighbours or padding.
#if defined(GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#undef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#else
#define GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "framework/backend/cpu/attention_terms-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// The coefficient of row i and term k stands at data[i * row_stride + k * term_stride].
template <typename T>
struct Coefficients {
  const T* data;
  int64_t row_stride, term_stride;
};

// y[i][c] = factor * the sum over terms k of coefficient(i, k) * x[k][c], for c < width; of the
// last vector of columns only those are written.
template <typename T>
struct Product {
  Coefficients<T> coefficients;
  Terms<T> x;
  Matrix<T> y;
  int64_t width;
  T factor;
};

// Vector v of row i over the terms [first, last), where what meets a coefficient of 0 counts as 0.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void multiply_hiding(D d, const Product<T>& p, int64_t i, int64_t v, int64_t first,
                                int64_t last) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto zero = hn::Zero(d);
  auto sum = zero;
  for (int64_t k = first; k < last; ++k) {
    const T coefficient =
        p.coefficients.data[i * p.coefficients.row_stride + k * p.coefficients.term_stride];
    if (coefficient == 0) continue;
    const auto x = hn::LoadU(d, p.x.data + k * p.x.term_stride + v * p.x.vector_stride);
    sum = hn::MulAdd(hn::Set(d, coefficient), x, sum);
  }
  const auto value = hn::Mul(sum, hn::Set(d, p.factor));
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), start = v * lanes;
  if (start + lanes <= p.width) {
    store(d, value, p.y.row(i), Whole{start});
  } else {
    store(d, value, p.y.row(i), Part{start, p.width - start});
  }
}

// kVectors vectors from v on, of kRows rows from `start` on. False, and nothing is stored, if
// kFinite asks for finite sums and one is not.
template <bool kFinite, int kRows, int kVectors, class D,
          typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE bool multiply_tile(D d, const Product<T>& p, int64_t start, int64_t v, int64_t first,
                              int64_t last) {
  namespace hn = hwy::HWY_NAMESPACE;
  using V = hn::Vec<D>;
  const int64_t row_stride = p.coefficients.row_stride, step = p.coefficients.term_stride;
  const T* a = p.coefficients.data + start * row_stride + first * step;
  const T* x = p.x.data + first * p.x.term_stride + v * p.x.vector_stride;
  const auto zero = hn::Zero(d);
  V sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) sums[r][c] = zero;
  for (int64_t k = first; k < last; ++k, a += step, x += p.x.term_stride) {
    V terms[kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) terms[c] = hn::LoadU(d, x + c * p.x.vector_stride);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto coefficient = hn::Set(d, a[r * row_stride]);
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) sums[r][c] = hn::MulAdd(coefficient, terms[c], sums[r][c]);
    }
  }
  if constexpr (kFinite) {
    auto products = zero;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) products = hn::MulAdd(sums[r][c], zero, products);
    if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Eq(products, zero)))) return false;
  }
  const auto factor = hn::Set(d, p.factor);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
#pragma GCC unroll 8
  for (int c = 0; c < kVectors; ++c) {
    const int64_t column = (v + c) * lanes, count = p.width - column;
    T* const y = p.y.row(start) + column;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto value = hn::Mul(sums[r][c], factor);
      if (count >= lanes) {
        hn::StoreU(value, d, y + r * p.y.stride);
      } else {
        store(d, value, y + r * p.y.stride, Part{0, count});
      }
    }
  }
  return true;
}

// kRows rows from `start` on.
template <bool kHide, int kRows, typename T>
HWY_NOINLINE void multiply_some_rows(const Product<T>& p, int64_t start, int64_t vectors,
                                     int64_t first, int64_t last) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  int64_t v = 0;
  const auto hide = [&](int64_t count) HWY_ATTR {
    // 0 * infinity and 0 * NaN are NaN, but a weight of 0 must hide what it meets.
    for (int64_t i = start; i < start + kRows; ++i)
      for (int64_t c = v; c < v + count; ++c) multiply_hiding(d, p, i, c, first, last);
  };
  for (; v + 2 <= vectors; v += 2)
    if (!multiply_tile<kHide, kRows, 2>(d, p, start, v, first, last)) hide(2);
  if (v < vectors && !multiply_tile<kHide, kRows, 1>(d, p, start, v, first, last)) hide(1);
}

// Rows computed at a time: with two vectors each, their sums fill 16 or 32 registers well.
inline constexpr int64_t kTileRows = HWY_MAX_BYTES == 64 ? 8 : 6;

// `count` rows, at most kRows, from `start` on.
template <bool kHide, int64_t kRows, typename T>
HWY_INLINE void multiply_up_to(int64_t count, const Product<T>& p, int64_t start, int64_t vectors,
                               int64_t first, int64_t last) {
  if constexpr (kRows > 1) {
    if (count < kRows) {
      multiply_up_to<kHide, kRows - 1>(count, p, start, vectors, first, last);
      return;
    }
  }
  multiply_some_rows<kHide, kRows>(p, start, vectors, first, last);
}

// What rows of a product need: the terms [first, last) and how many of the columns.
struct Extent {
  int64_t first, last, columns;
};

// All of y. `extent_of(first row, last row)` tells what is needed for any of these rows. With kHide
// a coefficient of 0 hides what it meets, even if that is not finite.
template <bool kHide, typename T, typename ExtentOf>
HWY_INLINE void multiply(const Product<T>& p, int64_t rows, const ExtentOf& extent_of) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t start = 0; start < rows; --tiles) {
    const int64_t count = (rows - start + tiles - 1) / tiles;  // tiles of about the same height
    const Extent extent = extent_of(start, start + count - 1);
    const int64_t vectors = (extent.columns + lanes - 1) / lanes;
    multiply_up_to<kHide, kTileRows>(count, p, start, vectors, extent.first, extent.last);
    start += count;
  }
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
