// The small matrix products of attention, compiled once for each instruction set: include after
// highway.h. Operands are parts of larger row-major matrices. Bound by arithmetic: rows times
// vectors of columns are summed in registers, term by term. So an element's sum is formed in the
// same order wherever it stands, and results do not depend on neighbours or padding.
#if defined(GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#undef GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#else
#define GS_BACKEND_CPU_ATTENTION_PRODUCTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

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

// The coefficient of row i and term k stands at data[i * row_stride + k * term_stride].
template <typename T>
struct Coefficients {
  const T* data;
  int64_t row_stride, term_stride;
};

// Vector v of term k stands at data[k * term_stride + v * vector_stride].
template <typename T>
struct Terms {
  const T* data;
  int64_t term_stride, vector_stride;
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

// The place of vector v in a row of `width` elements goes to body.
template <class D, class Body>
HWY_INLINE void with_place(D d, int64_t v, int64_t width, Body&& body) {
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  const int64_t start = v * lanes;
  if (start + lanes <= width) {
    body(Whole{start});
  } else {
    body(Part{start, width - start});
  }
}

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
  with_place(d, v, p.width, [&](auto at) HWY_ATTR {
    store(d, hn::Mul(sum, hn::Set(d, p.factor)), p.y.row(i), at);
  });
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
#pragma GCC unroll 8
  for (int c = 0; c < kVectors; ++c) {
    with_place(d, v + c, p.width, [&](auto at) HWY_ATTR {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) store(d, hn::Mul(sums[r][c], factor), p.y.row(start + r), at);
    });
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

// Rows computed at a time: with two vectors each, their sums fill the registers well.
inline constexpr int64_t kTileRows = 6;

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
    const auto run = [&](auto height) {
      multiply_some_rows<kHide, decltype(height)::value>(p, start, vectors, extent.first,
                                                         extent.last);
    };
    switch (count) {
      case 1:
        run(std::integral_constant<int, 1>());
        break;
      case 2:
        run(std::integral_constant<int, 2>());
        break;
      case 3:
        run(std::integral_constant<int, 3>());
        break;
      case 4:
        run(std::integral_constant<int, 4>());
        break;
      case 5:
        run(std::integral_constant<int, 5>());
        break;
      default:
        run(std::integral_constant<int, 6>());
        break;
    }
    start += count;
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

// The rows of x as terms of a product: in place, or copied to scratch memory where their width is
// not one of whole vectors.
template <int kPurpose, typename T>
Terms<T> terms_of(Matrix<const T> x, int64_t rows, int64_t width) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  const int64_t stride = padded<T>(width);
  if (stride == width) return {x.data, x.stride, lanes};
  T* const copy = attention_scratch<T, kPurpose>(rows * stride);
  for (int64_t i = 0; i < rows; ++i)
    std::fill(std::copy_n(x.row(i), width, copy + i * stride), copy + (i + 1) * stride, T{0});
  return {copy, stride, lanes};
}

#if HWY_TARGET != HWY_SCALAR
// A vector of blocks of 128 bits, with as many rows between them as they have elements: those at
// the start of row(first) and on.
template <class D, class Row>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_blocks(D d, int64_t first, const Row& row) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) <= 16) {
    return hn::LoadU(d, row(first));
  } else {
    const hn::Half<D> half;
    const int64_t count = static_cast<int64_t>(hn::Lanes(half));
    return hn::Combine(d, load_blocks(half, first + count, row), load_blocks(half, first, row));
  }
}
#endif

// panel[c * lanes + j] = row(j)[c] for c < width and all lanes j.
template <class D, class Row, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void transpose_panel(D d, T* panel, int64_t width, const Row& row) {
  namespace hn = hwy::HWY_NAMESPACE;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int64_t kBlock = 16 / sizeof(T);
  for (; c + kBlock <= width; c += kBlock, panel += kBlock * lanes) {
    const auto load = [&](int64_t first) HWY_ATTR {
      return load_blocks(d, first, [&](int64_t j) { return row(j) + c; });
    };
    const auto r0 = load(0), r1 = load(1);
    if constexpr (kBlock == 2) {
      hn::StoreU(hn::InterleaveLower(d, r0, r1), d, panel);
      hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, panel + lanes);
    } else {
      const auto r2 = load(2), r3 = load(3);
      const auto low0 = hn::InterleaveLower(d, r0, r2), low1 = hn::InterleaveLower(d, r1, r3);
      const auto high0 = hn::InterleaveUpper(d, r0, r2), high1 = hn::InterleaveUpper(d, r1, r3);
      hn::StoreU(hn::InterleaveLower(d, low0, low1), d, panel);
      hn::StoreU(hn::InterleaveUpper(d, low0, low1), d, panel + lanes);
      hn::StoreU(hn::InterleaveLower(d, high0, high1), d, panel + 2 * lanes);
      hn::StoreU(hn::InterleaveUpper(d, high0, high1), d, panel + 3 * lanes);
    }
  }
#endif
  for (; c < width; ++c, panel += lanes)
    for (int64_t j = 0; j < lanes; ++j) panel[j] = row(j)[c];
}

// The columns of x as terms of a product, in scratch memory: vector v holds rows v * lanes and on.
// Beyond the last row it is repeated.
template <typename T>
Terms<T> transposed_terms_of(Matrix<const T> x, int64_t rows, int64_t width) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  constexpr int64_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(d);
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  T* const panels = attention_scratch<T, 1>(padded<T>(rows) * width);
  for (int64_t start = 0; start < rows; start += lanes) {
    T* const panel = panels + start * width;
    if (start + lanes <= rows) {
      transpose_panel(d, panel, width, [&](int64_t j) { return x.row(start + j); });
    } else {
      const T* pointers[kLanes];
      for (int64_t j = 0; j < lanes; ++j) pointers[j] = x.row(std::min(start + j, rows - 1));
      transpose_panel(d, panel, width, [&](int64_t j) { return pointers[j]; });
    }
  }
  return {panels, lanes, width * lanes};
}

// The whole vector at a place.
HWY_INLINE Whole whole(Whole at) { return at; }
HWY_INLINE Whole whole(Part at) { return {at.start}; }

// The lanes of a vector of a row that come before element `count`.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Mask<D> before(D d, Whole at, int64_t count) {
  return hwy::HWY_NAMESPACE::FirstN(d, static_cast<size_t>(std::max<int64_t>(0, count - at.start)));
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
