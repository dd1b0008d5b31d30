#include "framework/backend/softmax.h"

#include <algorithm>
#include <limits>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// One row, its elements side by side: a vector holds a part of the row.
struct Along {
  int64_t length;

  template <class D, class Body>
  HWY_INLINE void for_each(D d, Body&& body) const {
    for_each_vector(d, length, body);
  }
  template <class D, class V>
  HWY_INLINE V sum(D d, V value) const {
    return hn::SumOfLanes(d, value);
  }
  template <class D, class V>
  HWY_INLINE V max(D d, V value) const {
    return hn::MaxOfLanes(d, value);
  }
  // The largest of the elements, and the sum of what step(total, at) adds up.
  template <class D, typename T>
  HWY_INLINE hn::Vec<D> max_of(D d, const T* x) const {
    return hn::MaxOfLanes(d, max_vectors(d, x, length));
  }
  template <class D, class Step>
  HWY_INLINE hn::Vec<D> sum_of(D d, Step&& step) const {
    return hn::SumOfLanes(d, sum_vectors(d, length, step));
  }
  template <class D, class V>
  HWY_INLINE V log(D d, V value) const {
    return hn::Set(d, std::log(hn::GetLane(value)));
  }
};

// As many rows as a vector has lanes, side by side: a vector holds one element of each.
template <class Place>
struct Across {
  int64_t length, stride;
  Place place;

  template <class D, class Body>
  HWY_INLINE void for_each(D, Body&& body) const {
    Place at = place;
    for (int64_t i = 0; i < length; ++i, at.start += stride) body(at);
  }
  template <class D, class V>
  HWY_INLINE V sum(D, V value) const {
    return value;
  }
  template <class D, class V>
  HWY_INLINE V max(D, V value) const {
    return value;
  }
  template <class D, typename T>
  HWY_INLINE hn::Vec<D> max_of(D d, const T* x) const {
    auto max = hn::Set(d, -kInfinity<T>);
    for_each(d, [&](auto at) HWY_ATTR { max = hn::Max(max, load(d, x, at, -kInfinity<T>)); });
    return max;
  }
  template <class D, class Step>
  HWY_INLINE hn::Vec<D> sum_of(D d, Step&& step) const {
    auto total = hn::Zero(d);
    for_each(d, [&](auto at) HWY_ATTR { total = step(total, at); });
    return total;
  }
  template <class D, class V>
  HWY_INLINE V log(D d, V value) const {
    return apply_lanes(d, value, [](hn::TFromD<D> lane) { return std::log(lane); });
  }
};

// The largest element, or 0 where all are -infinity: x minus it is then -infinity, not NaN.
template <class D, class Line, typename T>
HWY_INLINE hn::Vec<D> max_of_line(D d, const Line& line, const T* x) {
  const auto lowest = hn::Set(d, -kInfinity<T>);
  const auto max = line.max_of(d, x);
  return hn::IfThenElse(hn::Eq(max, lowest), hn::Zero(d), max);
}

struct Softmax {
  template <class Line, typename T>
  void operator()(const Line& line, T* y, const T* x, const T*) const {
    const hn::ScalableTag<T> d;
    const auto max = max_of_line(d, line, x);
    auto sum = hn::Zero(d);
    line.for_each(d, [&](auto at) HWY_ATTR {
      const auto power = exp_lanes(d, hn::Sub(load(d, x, at, -kInfinity<T>), max));
      store(d, power, y, at);
      sum = hn::Add(sum, power);
    });
    sum = line.sum(d, sum);
    const auto empty = hn::Eq(sum, hn::Zero(d));
    const auto scale = hn::IfThenZeroElse(empty, hn::Div(hn::Set(d, T{1}), sum));
    line.for_each(d, [&](auto at) HWY_ATTR { store(d, hn::Mul(load(d, y, at), scale), y, at); });
  }
};

struct LogSoftmax {
  template <class Line, typename T>
  void operator()(const Line& line, T* y, const T* x, const T*) const {
    const hn::ScalableTag<T> d;
    const auto max = max_of_line(d, line, x);
    auto sum = hn::Zero(d);
    line.for_each(d, [&](auto at) HWY_ATTR {
      sum = hn::Add(sum, exp_lanes(d, hn::Sub(load(d, x, at, -kInfinity<T>), max)));
    });
    sum = line.sum(d, sum);
    const auto empty = hn::Eq(sum, hn::Zero(d));
    const auto log_sum = hn::IfThenZeroElse(empty, line.log(d, sum));
    // One after the other: beside a large maximum the logarithm would vanish.
    line.for_each(d, [&](auto at) HWY_ATTR {
      store(d, hn::Sub(hn::Sub(load(d, x, at), max), log_sum), y, at);
    });
  }
};

struct SoftmaxBackward {
  template <class Line, typename T>
  void operator()(const Line& line, T* dx, const T* y, const T* dy) const {
    const hn::ScalableTag<T> d;
    const auto sum = line.sum_of(d, [&](auto total, auto at) HWY_ATTR {
      return hn::MulAdd(load(d, dy, at), load(d, y, at), total);
    });
    line.for_each(d, [&](auto at) HWY_ATTR {
      store(d, hn::Mul(load(d, y, at), hn::Sub(load(d, dy, at), sum)), dx, at);
    });
  }
};

struct LogSoftmaxBackward {
  template <class Line, typename T>
  void operator()(const Line& line, T* dx, const T* y, const T* dy) const {
    const hn::ScalableTag<T> d;
    const auto lowest = hn::Set(d, -kInfinity<T>);
    auto sum = hn::Zero(d), others = hn::Zero(d);  // others: how many are not -infinity
    line.for_each(d, [&](auto at) HWY_ATTR {
      sum = hn::Add(sum, load(d, dy, at));
      const auto is_lowest = hn::Eq(load(d, y, at, -kInfinity<T>), lowest);
      others = hn::Max(others, hn::IfThenZeroElse(is_lowest, hn::Set(d, T{1})));
    });
    sum = line.sum(d, sum);
    const auto empty = hn::Eq(line.max(d, others), hn::Zero(d));
    line.for_each(d, [&](auto at) HWY_ATTR {
      const auto value = hn::NegMulAdd(exp_lanes(d, load(d, y, at)), sum, load(d, dy, at));
      store(d, hn::IfThenZeroElse(empty, value), dx, at);
    });
  }
};

// Task i of the row kernels: row i where rows are dense, else up to `tile` rows side by side.
template <class Kernel, typename T>
void run_tasks(T* out, const T* a, const T* b, Rows rows, int64_t tile, int64_t first,
               int64_t last) {
  const Kernel kernel;
  if (rows.inner == 1) {
    for (int64_t i = first * rows.length; i < last * rows.length; i += rows.length)
      kernel(Along{rows.length}, out + i, a + i, b + i);
    return;
  }
  const int64_t tiles = (rows.inner + tile - 1) / tile;
  for (int64_t task = first; task < last; ++task) {
    const int64_t column = task % tiles * tile;
    const int64_t start = task / tiles * rows.length * rows.inner + column;
    for_each_vector(hn::ScalableTag<T>(), std::min(tile, rows.inner - column), [&](auto place) {
      kernel(Across<decltype(place)>{rows.length, rows.inner, place}, out + start, a + start,
             b + start);
    });
  }
}

template <class Kernel>
void run_kernel(Array& out, const Array& a, const Array& b, Rows rows, int64_t tile, int64_t first,
                int64_t last) {
  dispatch_floating("softmax", a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_tasks<Kernel>(out.data<T>(), a.data<T>(), b.data<T>(), rows, tile, first, last);
  });
}

void softmax_tasks(Array& y, const Array& x, const Array& unused, Rows rows, int64_t tile,
                   int64_t first, int64_t last) {
  run_kernel<Softmax>(y, x, unused, rows, tile, first, last);
}
void log_softmax_tasks(Array& y, const Array& x, const Array& unused, Rows rows, int64_t tile,
                       int64_t first, int64_t last) {
  run_kernel<LogSoftmax>(y, x, unused, rows, tile, first, last);
}
void softmax_backward_tasks(Array& dx, const Array& y, const Array& dy, Rows rows, int64_t tile,
                            int64_t first, int64_t last) {
  run_kernel<SoftmaxBackward>(dx, y, dy, rows, tile, first, last);
}
void log_softmax_backward_tasks(Array& dx, const Array& y, const Array& dy, Rows rows, int64_t tile,
                                int64_t first, int64_t last) {
  run_kernel<LogSoftmaxBackward>(dx, y, dy, rows, tile, first, last);
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(softmax_tasks);
HWY_EXPORT(log_softmax_tasks);
HWY_EXPORT(softmax_backward_tasks);
HWY_EXPORT(log_softmax_backward_tasks);

// Hands the rows out to the threads.
template <class Tasks>
void run_rows(Tasks tasks, Array& out, const Array& a, const Array& b, Rows rows) {
  if (out.elements() == 0) return;
  constexpr int64_t kGrain = 1 << 13, kTile = 64;
  const int64_t tiles = rows.inner == 1 ? 1 : (rows.inner + kTile - 1) / kTile;
  const int64_t width = std::min(kTile, rows.inner);
  parallel_for(0, rows.outer * tiles, std::max<int64_t>(1, kGrain / (rows.length * width)),
               [&](int64_t first, int64_t last) { tasks(out, a, b, rows, kTile, first, last); });
}

}  // namespace

void softmax(Cpu, Array& y, const Array& x, Rows rows) {
  run_rows(HWY_DYNAMIC_DISPATCH(softmax_tasks), y, x, x, rows);
}
void softmax_backward(Cpu, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run_rows(HWY_DYNAMIC_DISPATCH(softmax_backward_tasks), dx, y, dy, rows);
}
void log_softmax(Cpu, Array& y, const Array& x, Rows rows) {
  run_rows(HWY_DYNAMIC_DISPATCH(log_softmax_tasks), y, x, x, rows);
}
void log_softmax_backward(Cpu, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run_rows(HWY_DYNAMIC_DISPATCH(log_softmax_backward_tasks), dx, y, dy, rows);
}

}  // namespace gs::backend
#endif
