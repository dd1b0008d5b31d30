#include "framework/backend/top_log_softmax.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "framework/backend/cpu/top_rows.h"
#include "framework/backend/gemm.h"
#include "framework/core/parallel.h"

// The product is bound by arithmetic, the rest by that of exp where a row stays in the first-level
// cache between its passes, by memory where it does not. The largest of the chunks' maxima bound
// the elements that are wanted from below, so that few chunks are looked at once more, and nothing
// is sorted but what is left.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/top_log_softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Entry {
  T value;
  int32_t index;

  bool operator<(const Entry& other) const {  // comes before it
    return value != other.value ? value > other.value : index < other.index;
  }
};

// What a thread keeps from row to row.
template <typename T>
struct Scratch {
  std::vector<T> maxima, ranked;  // of the chunks
  std::vector<Entry<T>> entries;  // that may be among the largest
};

// Elements of a chunk: so few that there are more chunks than elements wanted, where rows are long
// enough.
int64_t chunk_of(int64_t length, int64_t count) {
  return std::clamp<int64_t>(length / (4 * count) / 16 * 16, 16, 128);
}

// Fills scratch.maxima, of chunks of so many elements, and gives the largest of all. NaN is passed
// over.
template <typename T>
T find_maxima(const T* x, int64_t length, int64_t chunk, Scratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  scratch.maxima.clear();
  T largest = kLowest;
  for (int64_t start = 0; start < length; start += chunk) {
    auto max = hn::Set(d, kLowest);
    for_each_vector(d, std::min(chunk, length - start),
                    [&](auto at) HWY_ATTR { max = hn::Max(max, load(d, x + start, at, kLowest)); });
    scratch.maxima.push_back(max_of(d, max));
    largest = std::max(largest, scratch.maxima.back());
  }
  return largest;
}

// The logarithm of the sum of exp(x - shift), in the order of log_softmax.
template <typename T>
T log_sum_of(const T* x, int64_t length, T shift) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  for_each_vector(d, length, [&](auto at) HWY_ATTR {
    const auto value = load(d, x, at, -std::numeric_limits<T>::infinity());
    sum = hn::Add(sum, exp_lanes(d, hn::Sub(value, hn::Set(d, shift))));
  });
  const T total = sum_of(d, sum);
  return total == 0 ? T{0} : std::log(total);
}

// Collects the elements that are at least `bound`, from chunks that have one.
template <typename T>
void collect(const T* x, int64_t length, int64_t chunk, T bound, Scratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, bound);
  scratch.entries.clear();
  for (size_t i = 0; i < scratch.maxima.size(); ++i) {
    if (scratch.maxima[i] < bound) continue;
    const int64_t start = static_cast<int64_t>(i) * chunk;
    for_each_vector(d, std::min(chunk, length - start), [&](auto at) HWY_ATTR {
      at.start += start;
      const auto value = load(d, x, at, std::numeric_limits<T>::quiet_NaN());
      if (hn::AllFalse(d, hn::Ge(value, lowest))) return;
      const int64_t end = std::min(at.start + static_cast<int64_t>(hn::Lanes(d)), length);
      for (int64_t j = at.start; j < end; ++j) {
        if (x[j] >= bound) scratch.entries.push_back({x[j], static_cast<int32_t>(j)});
      }
    });
  }
}

template <typename T>
void top_of_row(T* values, int32_t* indices, int64_t count, const T* x, int64_t length,
                Scratch<T>& scratch) {
  const int64_t chunk = chunk_of(length, count);
  const T max = find_maxima(x, length, chunk, scratch);
  const T shift = max == -std::numeric_limits<T>::infinity() ? T{0} : max;
  const T log_sum = log_sum_of(x, length, shift);
  if (std::isnan(log_sum)) {
    std::fill_n(values, count, log_sum);
    std::iota(indices, indices + count, 0);
    return;
  }
  T bound = -std::numeric_limits<T>::infinity();
  if (static_cast<int64_t>(scratch.maxima.size()) >= count) {
    scratch.ranked = scratch.maxima;
    const auto last = scratch.ranked.begin() + (count - 1);
    std::nth_element(scratch.ranked.begin(), last, scratch.ranked.end(), std::greater<T>());
    bound = *last;
  }
  collect(x, length, chunk, bound, scratch);
  std::vector<Entry<T>>& entries = scratch.entries;
  std::partial_sort(entries.begin(), entries.begin() + count, entries.end());
  for (int64_t i = 0; i < count; ++i) {
    const Entry<T>& entry = entries[static_cast<size_t>(i)];
    values[i] = entry.value - shift - log_sum;
    indices[i] = entry.index;
  }
}

template <typename T>
void top_of_rows(TopRows<T> top, const T* x, int64_t rows, int64_t length) {
  thread_local Scratch<T> scratch;
  for (int64_t row = 0; row < rows; ++row) {
    top_of_row(top.values + row * top.count, top.indices + row * top.count, top.count,
               x + row * length, length, scratch);
  }
}

void top_of_float_rows(TopRows<float> top, const float* x, int64_t rows, int64_t length) {
  top_of_rows(top, x, rows, length);
}
void top_of_double_rows(TopRows<double> top, const double* x, int64_t rows, int64_t length) {
  top_of_rows(top, x, rows, length);
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(top_of_float_rows);
HWY_EXPORT(top_of_double_rows);

void top_of_rows(TopRows<float> top, const float* x, int64_t rows, int64_t length) {
  HWY_DYNAMIC_DISPATCH(top_of_float_rows)(top, x, rows, length);
}
void top_of_rows(TopRows<double> top, const double* x, int64_t rows, int64_t length) {
  HWY_DYNAMIC_DISPATCH(top_of_double_rows)(top, x, rows, length);
}

// The results of the rows from `row` on.
template <typename T>
TopRows<T> rows_from(int64_t row, Array& values, Array& indices) {
  const int64_t count = values.shape()[1];
  return {values.data<T>() + row * count, indices.data<int32_t>() + row * count, count};
}

// The logits of `rows` rows of x and what is largest among them, in memory that the thread keeps.
template <typename T>
void multiply_and_take(TopRows<T> top, const T* x, int64_t rows, const Array& weight,
                       const Array& bias) {
  thread_local std::vector<T> logits;
  const int64_t width = weight.shape()[0], classes = weight.shape()[1];
  logits.resize(std::max(logits.size(), static_cast<size_t>(rows * classes)));
  for (int64_t row = 0; bias.defined() && row < rows; ++row)
    std::copy_n(bias.data<T>(), classes, logits.data() + row * classes);
  gemm(Cpu{},
       {.m = rows,
        .n = classes,
        .k = width,
        .a_stride = std::max<int64_t>(1, width),
        .b_stride = classes,
        .c_stride = classes,
        .beta = bias.defined() ? 1.0 : 0.0},
       x, weight.data<T>(), logits.data());
  top_of_rows(top, logits.data(), rows, classes);
}

}  // namespace

void top_log_softmax(Cpu, Array& values, Array& indices, const Array& x) {
  if (values.elements() == 0) return;
  constexpr int64_t kGrain = 1 << 13;
  const int64_t length = x.shape()[1];
  dispatch_floating("top_log_softmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(0, x.shape()[0], std::max<int64_t>(1, kGrain / length),
                 [&](int64_t first, int64_t last) {
                   top_of_rows(rows_from<T>(first, values, indices), x.data<T>() + first * length,
                               last - first, length);
                 });
  });
}

void linear_top_log_softmax(Cpu, Array& values, Array& indices, const Array& x, const Array& weight,
                            const Array& bias) {
  if (values.elements() == 0) return;
  const int64_t rows = x.shape()[0], width = x.shape()[1];
  // So many rows that their logits stay in the second-level cache.
  constexpr int64_t kElements = 150000, kFewest = 24;
  const int64_t block = std::max(kFewest, kElements / weight.shape()[1]);
  dispatch_floating("top_log_softmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto take = [&](int64_t first, int64_t last) {
      for (int64_t row = first * block; row < std::min(last * block, rows); row += block) {
        multiply_and_take<T>(rows_from<T>(row, values, indices), x.data<T>() + row * width,
                             std::min(block, rows - row), weight, bias);
      }
    };
    prepare_gemm(Cpu{}, x.dtype());
    parallel_for(0, (rows + block - 1) / block, 1, take);
  });
}

}  // namespace gs::backend
#endif
