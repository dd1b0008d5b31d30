// The operands of attention's products: parts of larger row-major matrices, in place or laid out in
// whole vectors. Compiled once for each instruction set: include after highway.h.
#if defined(GS_BACKEND_CPU_ATTENTION_TERMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_ATTENTION_TERMS_INL_H_
#undef GS_BACKEND_CPU_ATTENTION_TERMS_INL_H_
#else
#define GS_BACKEND_CPU_ATTENTION_TERMS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "framework/backend/cpu/attention_heads.h"

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

// Asks for what the next head will read or write of x if it has as many rows as this one, `rows`
// from `row` on. They are too far apart for the caches to foresee.
template <typename T>
HWY_INLINE void prefetch_next(const T* x, int64_t row, const AttentionHead& head, int64_t rows,
                              int64_t width) {
  const bool last = head.head + 1 == head.heads;
  const int64_t stride = head.heads * width;
  // Addresses, since they may lie beyond the array.
  uintptr_t line =
      reinterpret_cast<uintptr_t>(x) +
      sizeof(T) * static_cast<uintptr_t>(last ? (row + rows) * stride
                                              : row * stride + (head.head + 1) * width);
  for (int64_t i = 0; i < rows; ++i, line += sizeof(T) * static_cast<uintptr_t>(stride))
    for (uintptr_t byte = 0; byte < sizeof(T) * static_cast<uintptr_t>(width); byte += 64)
      __builtin_prefetch(reinterpret_cast<const void*>(line + byte));
}

// Vector v of term k stands at data[k * term_stride + v * vector_stride].
template <typename T>
struct Terms {
  const T* data;
  int64_t term_stride, vector_stride;
};

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
template <typename T>
Terms<T> terms_of(Matrix<const T> x, int64_t rows, int64_t width) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  const int64_t stride = padded<T>(width);
  if (stride == width) return {x.data, x.stride, lanes};
  T* const copy = attention_scratch<T, 4>(rows * stride);
  for (int64_t i = 0; i < rows; ++i)
    std::fill(std::copy_n(x.row(i), width, copy + i * stride), copy + (i + 1) * stride, T{0});
  return {copy, stride, lanes};
}

// The elements of a block of 128 bits.
template <typename T>
constexpr int64_t kBlock = 16 / sizeof(T);

#if HWY_TARGET != HWY_SCALAR
// A vector of blocks: those at the start of row(first) and on, with kBlock rows between them. Only
// the first kBlocks, the others are 0.
template <int64_t kBlocks, class D, class Row>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_blocks(D d, int64_t first, const Row& row) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr int64_t kElements = kBlock<hn::TFromD<D>>;
  constexpr int64_t kLower = hn::MaxLanes(D()) / kElements / 2;
  if constexpr (kLower == 0) {
    return hn::LoadU(d, row(first));
  } else if constexpr (kBlocks <= kLower) {
    return hn::ZeroExtendVector(d, load_blocks<kBlocks>(hn::Half<D>(), first, row));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks<kBlocks - kLower>(half, first + kLower * kElements, row),
                       load_blocks<kLower>(half, first, row));
  }
}
#endif

// panel[c * lanes + j] = row(j)[c] for c < width and the lanes j of the first kBlocks blocks.
template <int64_t kBlocks, class D, class Row, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void transpose_panel(D d, T* panel, int64_t width, const Row& row) {
  namespace hn = hwy::HWY_NAMESPACE;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; c + kBlock<T> <= width; c += kBlock<T>, panel += kBlock<T> * lanes) {
    const auto load = [&](int64_t first) HWY_ATTR {
      return load_blocks<kBlocks>(d, first, [&](int64_t j) { return row(j) + c; });
    };
    const auto r0 = load(0), r1 = load(1);
    if constexpr (kBlock<T> == 2) {
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
    for (int64_t j = 0; j < lanes; ++j) panel[j] = j < kBlocks * kBlock<T> ? row(j)[c] : T{0};
}

// The columns of x as terms of a product, in scratch memory: vector v holds rows v * lanes and on.
// What stands beyond the last row does not count.
template <typename T>
Terms<T> transposed_terms_of(Matrix<const T> x, int64_t rows, int64_t width) {
  const hwy::HWY_NAMESPACE::ScalableTag<T> d;
  constexpr int64_t kLanes = hwy::HWY_NAMESPACE::MaxLanes(d);
  constexpr int64_t kBlocks = (kLanes + kBlock<T> - 1) / kBlock<T>;
  T* const panels = attention_scratch<T, 1>(padded<T>(rows) * width);
  int64_t start = 0;
  for (; start + kLanes <= rows; start += kLanes)
    transpose_panel<kBlocks>(d, panels + start * width, width,
                             [&](int64_t j) { return x.row(start + j); });
  if (start < rows) {
    const T* pointers[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) pointers[j] = x.row(std::min(start + j, rows - 1));
    const auto transpose = [&](auto blocks) {
      transpose_panel<decltype(blocks)::value>(d, panels + start * width, width,
                                               [&](int64_t j) { return pointers[j]; });
    };
    // A block at a time, since most of the work would be for nothing where few rows are left.
    const int64_t blocks = (rows - start + kBlock<T> - 1) / kBlock<T>;
    if (blocks * 4 <= kBlocks) {
      transpose(std::integral_constant<int64_t, (kBlocks + 3) / 4>());
    } else if (blocks * 2 <= kBlocks) {
      transpose(std::integral_constant<int64_t, (kBlocks + 1) / 2>());
    } else {
      transpose(std::integral_constant<int64_t, kBlocks>());
    }
  }
  return {panels, kLanes, width * kLanes};
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
