#include "framework/backend/cross_entropy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/backend/cpu/cross_entropy_rows.h"
#include "framework/backend/cpu/data_or_null.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory where the logits come from there, else by the exponentials: a row is read once
// and then stays in the first cache for its passes.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The largest of a row, -infinity of none; NaN may or may not show.
template <typename T>
T largest(const T* x, int64_t classes) {
  const hn::ScalableTag<T> d;
  return max_of(d, max_vectors(d, x, classes));
}

// Sums over a row of x - shift, and of its exponentials, which go to `powers` unless it is null.
template <typename T>
struct RowSums {
  T power, offset;
};
template <bool write, typename T>
RowSums<T> sum_powers([[maybe_unused]] T* powers, const T* x, T shift, int64_t classes) {
  const hn::ScalableTag<T> d;
  const auto shifts = hn::Set(d, shift);
  auto power_sum = hn::Zero(d), offset_sum = hn::Zero(d);
  for_each_vector(d, classes, [&](auto at) HWY_ATTR {
    const auto offset = hn::Sub(load(d, x, at, -std::numeric_limits<T>::infinity()), shifts);
    const auto power = exp_lanes(d, offset);
    if constexpr (write) store(d, power, powers, at);
    power_sum = hn::Add(power_sum, power);
    offset_sum = hn::Add(offset_sum, inside(d, offset, at));
  });
  return {sum_of(d, power_sum), sum_of(d, offset_sum)};
}

// dx, which holds the exponentials, becomes their share of `sum` less the target distribution.
template <typename T>
void finish_gradient(T* dx, T sum, int64_t classes, int64_t target, double smoothing) {
  if (sum == 0) return void(std::fill_n(dx, classes, T{0}));
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, 1 / sum);
  const auto spread = hn::Set(d, static_cast<T>(smoothing / static_cast<double>(classes)));
  for_each_vector(d, classes, [&](auto at) HWY_ATTR {
    store(d, hn::MulSub(load(d, dx, at), scale, spread), dx, at);
  });
  dx[target] -= static_cast<T>(1 - smoothing);
}

// Adds one row that counts; dx (unless null) may be x.
template <typename T>
void add_row(CrossEntropySums& sums, T* dx, const T* x, int64_t classes, int64_t target,
             double smoothing) {
  const T top = largest(x, classes), at_target = x[target];
  const T max = top == -std::numeric_limits<T>::infinity() ? 0 : top;
  const bool on_top = at_target == top && std::find(x, x + target, top) == x + target;
  const RowSums<T> row = dx == nullptr ? sum_powers<false>(dx, x, max, classes)
                                       : sum_powers<true>(dx, x, max, classes);
  if (dx != nullptr) finish_gradient(dx, row.power, classes, target, smoothing);
  ++sums.count;
  if (row.power == 0) {  // no class is possible
    sums.loss += std::numeric_limits<double>::infinity();
    sums.negative_log_likelihood += std::numeric_limits<double>::infinity();
    return;
  }
  const double log_sum = std::log(static_cast<double>(row.power));
  const double nll = log_sum - (static_cast<double>(at_target) - static_cast<double>(max));
  sums.negative_log_likelihood += nll;
  sums.loss += nll;
  if (smoothing > 0) {
    const double mean = static_cast<double>(row.offset) / static_cast<double>(classes);
    sums.loss += smoothing * (log_sum - mean - nll);
  }
  if (on_top && row.power == row.power) ++sums.correct;  // NaN predicts nothing
}

template <typename T>
void add(T* y, const T* a, const T* b, int64_t count) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    store(d, hn::Add(load(d, a, at), load(d, b, at)), y, at);
  });
}

template <typename T>
CrossEntropySums add_block(const CrossEntropyRows<T>& rows, const CrossEntropyOptions& options,
                           int64_t block) {
  const int64_t classes = rows.classes, begin = block * rows.kBlock;
  T* const block_sum = rows.block_sums == nullptr ? nullptr : rows.block_sums + block * classes;
  if (block_sum != nullptr) std::fill_n(block_sum, classes, T{0});
  CrossEntropySums sums;
  for (int64_t row = begin; row < std::min(begin + rows.kBlock, rows.rows); ++row) {
    const T* x = rows.logits + row * classes;
    T* const dx = rows.dlogits == nullptr ? nullptr : rows.dlogits + row * classes;
    if (rows.targets[row] == options.ignore_index) {
      if (dx != nullptr) std::fill_n(dx, classes, T{0});
      continue;
    }
    if (rows.bias != nullptr) {
      add(dx, x, rows.bias, classes);
      x = dx;
    }
    add_row(sums, dx, x, classes, rows.targets[row], options.label_smoothing);
    if (block_sum != nullptr) add(block_sum, block_sum, dx, classes);
  }
  return sums;
}

CrossEntropySums add_float_block(const CrossEntropyRows<float>& rows,
                                 const CrossEntropyOptions& options, int64_t block) {
  return add_block(rows, options, block);
}

CrossEntropySums add_double_block(const CrossEntropyRows<double>& rows,
                                  const CrossEntropyOptions& options, int64_t block) {
  return add_block(rows, options, block);
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(add_float_block);
HWY_EXPORT(add_double_block);

template <typename AddBlock>
CrossEntropySums add_blocks(int64_t blocks, int64_t elements, const AddBlock& add_block) {
  constexpr int64_t kGrain = 1 << 13;  // elements that are worth another thread
  std::vector<CrossEntropySums> parts(static_cast<size_t>(blocks));
  const int64_t grain = kGrain * blocks / std::max<int64_t>(1, elements);
  parallel_for(0, blocks, std::max<int64_t>(1, grain), [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) parts[static_cast<size_t>(b)] = add_block(b);
  });
  CrossEntropySums sums;
  for (const CrossEntropySums& part : parts) sums += part;
  return sums;
}

}  // namespace

CrossEntropySums cross_entropy_rows(const CrossEntropyRows<float>& rows,
                                    const CrossEntropyOptions& options) {
  return add_blocks(rows.blocks(), rows.rows * rows.classes, [&](int64_t block) {
    return HWY_DYNAMIC_DISPATCH(add_float_block)(rows, options, block);
  });
}

CrossEntropySums cross_entropy_rows(const CrossEntropyRows<double>& rows,
                                    const CrossEntropyOptions& options) {
  return add_blocks(rows.blocks(), rows.rows * rows.classes, [&](int64_t block) {
    return HWY_DYNAMIC_DISPATCH(add_double_block)(rows, options, block);
  });
}

Array cross_entropy(Cpu, Array& dlogits, const Array& logits, const Array& targets,
                    const CrossEntropyOptions& options) {
  return dispatch_floating("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const CrossEntropyRows<T> rows{.logits = logits.data<T>(),
                                   .targets = targets.data<int32_t>(),
                                   .rows = targets.elements(),
                                   .classes = logits.shape()[logits.rank() - 1],
                                   .dlogits = data_or_null<T>(dlogits)};
    return cross_entropy_rows(rows, options).array();
  });
}

}  // namespace gs::backend
#endif
