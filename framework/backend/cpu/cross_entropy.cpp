#include "framework/backend/cross_entropy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The maximum (0 where all are -infinity) and the sum of exp(x - maximum) go to `statistics`.
template <typename T>
void add_row(CrossEntropySums& sums, T* statistics, const T* x, int64_t classes, int64_t target,
             double smoothing) {
  const hn::ScalableTag<T> d;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  auto max_lanes = hn::Set(d, kLowest);
  for_each_vector(d, classes, [&](auto at) HWY_ATTR {
    max_lanes = hn::Max(max_lanes, load(d, x, at, kLowest));
  });
  const T top = max_of(d, max_lanes), max = top == kLowest ? 0 : top;
  const auto shift = hn::Set(d, max);
  auto power_sum = hn::Zero(d), offset_sum = hn::Zero(d);
  for_each_vector(d, classes, [&](auto at) HWY_ATTR {
    const auto offset = hn::Sub(load(d, x, at, kLowest), shift);
    power_sum = hn::Add(power_sum, exp_lanes(d, offset));
    offset_sum = hn::Add(offset_sum, inside(d, offset, at));
  });
  const T sum = sum_of(d, power_sum);
  statistics[0] = max;
  statistics[1] = sum;
  ++sums.count;
  if (sum == 0) {  // no class is possible
    sums.loss += std::numeric_limits<double>::infinity();
    sums.negative_log_likelihood += std::numeric_limits<double>::infinity();
    return;
  }
  const double log_sum = std::log(static_cast<double>(sum));
  const double nll = log_sum - (static_cast<double>(x[target]) - static_cast<double>(max));
  sums.negative_log_likelihood += nll;
  sums.loss += nll;
  if (smoothing > 0) {
    const double mean = static_cast<double>(sum_of(d, offset_sum)) / static_cast<double>(classes);
    sums.loss += smoothing * (log_sum - mean - nll);
  }
  if (x[target] == top && sum == sum) sums.correct += std::find(x, x + target, top) == x + target;
}

void add_rows(CrossEntropySums& sums, Array& statistics, const Array& logits, const Array& targets,
              CrossEntropyOptions options, int64_t first, int64_t last) {
  dispatch_floating("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t classes = logits.shape()[logits.rank() - 1];
    for (int64_t row = first; row < last; ++row) {
      const int32_t target = targets.data<int32_t>()[row];
      if (target == options.ignore_index) continue;
      add_row(sums, statistics.data<T>() + 2 * row, logits.data<T>() + row * classes, classes,
              target, options.label_smoothing);
    }
  });
}

template <typename T>
void write_gradient(T* dx, const T* x, T factor, const T* statistics, int64_t classes,
                    int64_t target, double smoothing) {
  if (statistics[1] == 0) return void(std::fill_n(dx, classes, T{0}));
  const hn::ScalableTag<T> d;
  const auto max = hn::Set(d, statistics[0]), scale = hn::Set(d, factor / statistics[1]);
  const T spread = static_cast<T>(smoothing / static_cast<double>(classes)) * factor;
  for_each_vector(d, classes, [&](auto at) HWY_ATTR {
    const auto power = exp_lanes(d, hn::Sub(load(d, x, at), max));
    store(d, hn::MulSub(power, scale, hn::Set(d, spread)), dx, at);
  });
  dx[target] -= static_cast<T>(1 - smoothing) * factor;
}

void write_gradients(Array& dlogits, const Array& dloss, const Array& statistics,
                     const Array& logits, const Array& targets, CrossEntropyOptions options,
                     int64_t first, int64_t last) {
  dispatch_floating("cross_entropy", logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t classes = logits.shape()[logits.rank() - 1];
    for (int64_t row = first; row < last; ++row) {
      const int32_t target = targets.data<int32_t>()[row];
      T* const dx = dlogits.data<T>() + row * classes;
      if (target == options.ignore_index) {
        std::fill_n(dx, classes, T{0});
        continue;
      }
      write_gradient(dx, logits.data<T>() + row * classes, dloss.data<T>()[0],
                     statistics.data<T>() + 2 * row, classes, target, options.label_smoothing);
    }
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(add_rows);
HWY_EXPORT(write_gradients);

constexpr int64_t kGrain = 1 << 13;

}  // namespace

CrossEntropySums cross_entropy(Cpu, Array& statistics, const Array& logits, const Array& targets,
                               CrossEntropyOptions options) {
  const int64_t rows = targets.elements(), classes = logits.shape()[logits.rank() - 1];
  // Blocks of a fixed size, so that the sums do not depend on the number of threads.
  const int64_t block = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes));
  const int64_t blocks = (rows + block - 1) / block;
  std::vector<CrossEntropySums> parts(static_cast<size_t>(blocks));
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      HWY_DYNAMIC_DISPATCH(add_rows)
      (parts[static_cast<size_t>(b)], statistics, logits, targets, options, b * block,
       std::min(rows, (b + 1) * block));
    }
  });
  CrossEntropySums sums;
  for (const CrossEntropySums& part : parts) {
    sums.loss += part.loss;
    sums.negative_log_likelihood += part.negative_log_likelihood;
    sums.count += part.count;
    sums.correct += part.correct;
  }
  return sums;
}

void cross_entropy_backward(Cpu, Array& dlogits, const Array& dloss, const Array& statistics,
                            const Array& logits, const Array& targets,
                            CrossEntropyOptions options) {
  const int64_t classes = logits.shape()[logits.rank() - 1];
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(1, classes));
  parallel_for(0, targets.elements(), grain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(write_gradients)
    (dlogits, dloss, statistics, logits, targets, options, first, last);
  });
}

}  // namespace gs::backend
#endif
