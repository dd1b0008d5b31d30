#include "framework/backend/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "framework/backend/cpu/data_or_null.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/layer_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/drop-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory where the rows leave the second-level cache, by arithmetic before.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Pointers to whole arrays; null where there is none.
template <typename T>
struct Forward {
  T* y;
  T* statistics;
  const T* x;
  const T* weight;
  const T* bias;
  int64_t width;
  NormOptions options;
};

template <typename T>
struct Backward {
  T* dx;
  T* sums;  // of a block of rows: dy * normalised x (C), then dy (C)
  const T* dy;
  const T* x;
  const T* statistics;
  const T* weight;
  int64_t width;
  bool centered;
};

// The rows of a block, pass by pass: the long waits for a row's sum, root and quotient are those of
// all rows at once, and the block stays in the first-level cache.
constexpr int64_t kBlock = 8;

template <typename T>
HWY_INLINE T mean_of_row(const T* HWY_RESTRICT x, int64_t width) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, x[0]);
  const auto sum = sum_vectors(d, width, [&](auto total, auto at) HWY_ATTR {
    return hn::Add(total, hn::Sub(load(d, x, at, x[0]), shift));
  });
  return sum_of(d, sum) / static_cast<T>(width);
}

template <typename T>
HWY_INLINE T variance_of_row(const T* HWY_RESTRICT x, int64_t width, T origin, T mean) {
  const hn::ScalableTag<T> d;
  const auto shift = hn::Set(d, origin), middle = hn::Set(d, mean);
  const auto squares = sum_vectors(d, width, [&](auto total, auto at) HWY_ATTR {
    const auto offset = inside(d, hn::Sub(hn::Sub(load(d, x, at), shift), middle), at);
    return hn::MulAdd(offset, offset, total);
  });
  return sum_of(d, squares) / static_cast<T>(width);
}

// By value: stores of vectors could otherwise change what `a` points to, for all the compiler
// knows.
template <typename T>
HWY_INLINE void write_row(const Forward<T> a, int64_t row, T origin) {
  const hn::ScalableTag<T> d;
  const T* HWY_RESTRICT x = a.x + row * a.width;
  T* HWY_RESTRICT y = a.y + row * a.width;
  const auto shift = hn::Set(d, origin), middle = hn::Set(d, a.statistics[2 * row]);
  const auto scale = hn::Set(d, a.statistics[2 * row + 1]);
  for_each_vector(d, a.width, [&](auto at) HWY_ATTR {
    auto value = hn::Mul(hn::Sub(hn::Sub(load(d, x, at), shift), middle), scale);
    if (a.weight != nullptr) value = hn::Mul(value, load(d, a.weight, at));
    if (a.bias != nullptr) value = hn::Add(value, load(d, a.bias, at));
    store(d, value, y, at);
  });
}

template <typename T>
HWY_INLINE void normalize_block(const Forward<T> a, int64_t first, int64_t last) {
  const auto origin = [&](int64_t row) { return a.options.centered ? a.x[row * a.width] : T{0}; };
  for (int64_t row = first; row < last; ++row)
    a.statistics[2 * row] = a.options.centered ? mean_of_row(a.x + row * a.width, a.width) : 0;
  for (int64_t row = first; row < last; ++row) {
    a.statistics[2 * row + 1] =
        variance_of_row(a.x + row * a.width, a.width, origin(row), a.statistics[2 * row]);
  }
  for (int64_t row = first; row < last; ++row) {
    T& scale = a.statistics[2 * row + 1];
    scale = static_cast<T>(1 / std::sqrt(scale + a.options.epsilon));
  }
  for (int64_t row = first; row < last; ++row) write_row(a, row, origin(row));
}

// With n the normalised x and g = dy * weight:
// dx = (g - mean(g) - n * mean(g * n)) / sqrt(variance + epsilon), without mean(g) if not centered
template <typename T>
void normalize_row_backward(const Backward<T> a, int64_t row) {
  const hn::ScalableTag<T> d;
  const T* HWY_RESTRICT x = a.x + row * a.width;
  const T* HWY_RESTRICT dy = a.dy + row * a.width;
  const auto shift = hn::Set(d, a.centered ? x[0] : 0), middle = hn::Set(d, a.statistics[2 * row]);
  const auto scale = hn::Set(d, a.statistics[2 * row + 1]);
  const auto normalized = [&](auto at) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::Sub(load(d, x, at), shift), middle), scale);
  };
  const auto weighted = [&](auto upstream, auto at) HWY_ATTR {
    return a.weight == nullptr ? upstream : hn::Mul(upstream, load(d, a.weight, at));
  };
  T* HWY_RESTRICT dweight = a.sums;
  T* HWY_RESTRICT dbias = a.sums + a.width;
  auto sum = hn::Zero(d), product_sum = hn::Zero(d);
  for_each_vector(d, a.width, [&](auto at) HWY_ATTR {
    const auto n = normalized(at), upstream = load(d, dy, at), g = weighted(upstream, at);
    sum = hn::Add(sum, g);  // beyond the row g is 0
    product_sum = hn::MulAdd(g, n, product_sum);
    if (a.sums == nullptr) return;
    store(d, hn::MulAdd(upstream, n, load(d, dweight, at)), dweight, at);
    store(d, hn::Add(upstream, load(d, dbias, at)), dbias, at);
  });
  if (a.dx == nullptr) return;
  const T width = static_cast<T>(a.width);
  const auto mean = hn::Set(d, a.centered ? sum_of(d, sum) / width : 0);
  const auto product_mean = hn::Set(d, sum_of(d, product_sum) / width);
  T* HWY_RESTRICT dx = a.dx + row * a.width;
  for_each_vector(d, a.width, [&](auto at) HWY_ATTR {
    const auto centered = hn::Sub(weighted(load(d, dy, at), at), mean);
    store(d, hn::Mul(scale, hn::NegMulAdd(normalized(at), product_mean, centered)), dx, at);
  });
}

// Rows first to last - 1.
void normalize(Array& y, Array& statistics, const Array& x, const Array& weight, const Array& bias,
               NormOptions options, int64_t first, int64_t last) {
  dispatch_floating("layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Forward<T> a{
        y.data<T>(),           statistics.data<T>(),    x.data<T>(), data_or_null<T>(weight),
        data_or_null<T>(bias), x.shape()[x.rank() - 1], options};
    for (int64_t row = first; row < last; row += kBlock)
      normalize_block(a, row, std::min(last, row + kBlock));
  });
}

// The same for sum = x + dropout(branch) in place of x.
void normalize_sum(Array& y, Array& sum, Array& statistics, const Array& x, const Array& branch,
                   const DropoutMask& dropout, const Array& weight, const Array& bias,
                   NormOptions options, int64_t first, int64_t last) {
  dispatch_floating("residual_layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = x.shape()[x.rank() - 1];
    const Forward<T> a{y.data<T>(),
                       statistics.data<T>(),
                       sum.data<T>(),
                       data_or_null<T>(weight),
                       data_or_null<T>(bias),
                       width,
                       options};
    for (int64_t row = first; row < last; row += kBlock) {
      const int64_t end = std::min(last, row + kBlock), start = row * width;
      add_dropped(sum.data<T>() + start, x.data<T>() + start, branch.data<T>() + start, dropout,
                  start, (end - row) * width);
      normalize_block(a, row, end);
    }
  });
}

// Block `b` of `block` rows; its sums go to scratch[b] unless scratch is undefined.
void normalize_backward(NormGradients& gradients, Array& scratch, const Array& dy, const Array& x,
                        const Array& statistics, const Array& weight, bool centered,
                        const DropoutMask& dropout, int64_t b, int64_t block) {
  dispatch_floating("layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = x.shape()[x.rank() - 1];
    T* sums = data_or_null<T>(scratch);
    if (sums != nullptr) {
      sums += b * 2 * width;
      std::fill_n(sums, 2 * width, T{0});
    }
    const Backward<T> a{
        data_or_null<T>(gradients.dx), sums,  dy.data<T>(), x.data<T>(), statistics.data<T>(),
        data_or_null<T>(weight),       width, centered};
    const int64_t last = std::min(statistics.shape()[0], (b + 1) * block);
    for (int64_t row = b * block; row < last; ++row) normalize_row_backward(a, row);
    if (!gradients.dbranch.defined()) return;
    const int64_t start = b * block * width;
    drop(gradients.dbranch.data<T>() + start, a.dx + start, dropout, start, last * width - start);
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(normalize);
HWY_EXPORT(normalize_sum);
HWY_EXPORT(normalize_backward);

constexpr int64_t kGrain = 1 << 14;

// y[c] = the sum over b of scratch[b, part, c], for scratch (blocks, 2, C).
void sum_blocks(Array& y, const Array& scratch, int64_t part) {
  if (!y.defined()) return;
  dispatch_floating("layer_norm", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const int64_t blocks = scratch.shape()[0], width = scratch.shape()[2];
    constexpr int64_t kTile = 64;
    for (int64_t first = 0; first < width; first += kTile) {
      double sum[kTile] = {};
      const int64_t columns = std::min(kTile, width - first);
      for (int64_t b = 0; b < blocks; ++b) {
        const T* const in = scratch.data<T>() + (2 * b + part) * width + first;
        for (int64_t c = 0; c < columns; ++c) sum[c] += static_cast<double>(in[c]);
      }
      for (int64_t c = 0; c < columns; ++c) out[first + c] = static_cast<T>(sum[c]);
    }
  });
}

}  // namespace

void layer_norm(Cpu, Array& y, Array& statistics, const Array& x, const Array& weight,
                const Array& bias, NormOptions options) {
  if (x.elements() == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / x.shape()[x.rank() - 1]);
  parallel_for(0, statistics.shape()[0], grain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(normalize)(y, statistics, x, weight, bias, options, first, last);
  });
}

void residual_layer_norm(Cpu, Array& y, Array& sum, Array& statistics, const Array& x,
                         const Array& branch, const DropoutMask& dropout, const Array& weight,
                         const Array& bias, NormOptions options) {
  if (x.elements() == 0) return;
  const int64_t grain = std::max<int64_t>(1, kGrain / x.shape()[x.rank() - 1]);
  parallel_for(0, statistics.shape()[0], grain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(normalize_sum)
    (y, sum, statistics, x, branch, dropout, weight, bias, options, first, last);
  });
}

void layer_norm_backward(Cpu, NormGradients& gradients, const Array& dy, const Array& x,
                         const Array& statistics, const Array& weight, NormOptions options,
                         const DropoutMask& dropout) {
  const int64_t rows = statistics.shape()[0], width = x.shape()[x.rank() - 1];
  if (width == 0) return;
  const int64_t block = std::max<int64_t>(16, (rows + 63) / 64);
  const int64_t blocks = (rows + block - 1) / block;
  Array scratch;
  if (gradients.dweight.defined() || gradients.dbias.defined())
    scratch = Array::empty({blocks, 2, width}, x.dtype());
  parallel_for(
      0, blocks, std::max<int64_t>(1, kGrain / (block * width)), [&](int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
          HWY_DYNAMIC_DISPATCH(normalize_backward)
          (gradients, scratch, dy, x, statistics, weight, options.centered, dropout, b, block);
        }
      });
  sum_blocks(gradients.dweight, scratch, 0);
  sum_blocks(gradients.dbias, scratch, 1);
}

}  // namespace gs::backend
#endif
