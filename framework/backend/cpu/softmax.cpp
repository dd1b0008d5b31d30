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

// Bound by the arithmetic of the exponentials; the gradient of softmax by memory.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Rows side by side that a kernel takes at a time: of each line some whole cache lines.
constexpr int64_t kPanel = 128;

// A number of every row at hand, in all lanes or in those of its column.
template <class V>
struct OfRow {
  template <class D, class Column>
  HWY_INLINE V at(D, Column) const {
    return value;
  }
  template <class D, class Column>
  HWY_INLINE void set(D, Column, V number) {
    value = number;
  }
  V value;
};
template <typename T>
struct OfColumns {
  template <class D, class Column>
  HWY_INLINE hn::Vec<D> at(D d, Column column) const {
    return load(d, values, column);
  }
  template <class D, class V, class Column>
  HWY_INLINE void set(D d, Column column, V number) {
    store(d, number, values, column);
  }
  HWY_ALIGN T values[kPanel];
};

// One row, its elements side by side: a vector holds a part of the row.
struct Along {
  int64_t length;

  // Calls body(place, column) for the vectors of all elements.
  template <class D, class Body>
  HWY_INLINE void for_each(D d, Body&& body) const {
    for_each_vector(d, length, [&](auto at) HWY_ATTR { body(at, at); });
  }
  // f(number) of a number of each row.
  template <class D, class V, class Function>
  HWY_INLINE OfRow<V> map(D, const OfRow<V>& number, Function&& f) const {
    return {f(number.value)};
  }
  template <class D, typename T>
  HWY_INLINE OfRow<hn::Vec<D>> max(D d, const T* x) const {
    return {hn::MaxOfLanes(d, max_vectors(d, x, length))};
  }
  // The sum of what step(total, place, column) adds up.
  template <class D, class Step>
  HWY_INLINE OfRow<hn::Vec<D>> sum(D d, Step&& step) const {
    auto total = hn::Zero(d);
    for_each_vector(d, length, [&](auto at) HWY_ATTR { total = step(total, at, at); });
    return {hn::SumOfLanes(d, total)};
  }
  template <class D, class V>
  HWY_INLINE OfRow<V> log(D d, const OfRow<V>& number) const {
    return {hn::Set(d, std::log(hn::GetLane(number.value)))};
  }
};

// `width` rows side by side: a vector holds one element of each of some rows.
struct Across {
  int64_t length, stride, width;

  template <class D, class Body>
  HWY_INLINE void for_each(D d, Body&& body) const {
    for (int64_t start = 0; start < length * stride; start += stride) {
      for_each_vector(d, width, [&](auto column) HWY_ATTR {
        auto at = column;
        at.start += start;
        body(at, column);
      });
    }
  }
  template <class D, typename T, class Function>
  HWY_INLINE OfColumns<T> map(D d, const OfColumns<T>& number, Function&& f) const {
    OfColumns<T> result;
    for_each_vector(d, width,
                    [&](auto column) HWY_ATTR { result.set(d, column, f(number.at(d, column))); });
    return result;
  }
  template <class D, typename T>
  HWY_INLINE OfColumns<T> max(D d, const T* x) const {
    OfColumns<T> result;
    std::fill_n(result.values, kPanel, -kInfinity<T>);
    for_each(d, [&](auto at, auto column) HWY_ATTR {
      result.set(d, column, hn::Max(result.at(d, column), load(d, x, at)));
    });
    return result;
  }
  template <class D, class Step, typename T = hn::TFromD<D>>
  HWY_INLINE OfColumns<T> sum(D d, Step&& step) const {
    OfColumns<T> total;
    std::fill_n(total.values, kPanel, T{0});
    for_each(d, [&](auto at, auto column)
                    HWY_ATTR { total.set(d, column, step(total.at(d, column), at, column)); });
    return total;
  }
  template <class D, typename T>
  HWY_INLINE OfColumns<T> log(D d, const OfColumns<T>& number) const {
    return map(d, number, [&](auto value) HWY_ATTR {
      return apply_lanes(d, value, [](T lane) { return std::log(lane); });
    });
  }
};

// The largest element, or 0 where all are -infinity: x minus it is then -infinity, not NaN.
template <class D, class Line, typename T>
HWY_INLINE auto finite_max(D d, const Line& line, const T* x) {
  const auto lowest = hn::Set(d, -kInfinity<T>);
  return line.map(d, line.max(d, x), [&](auto max) HWY_ATTR {
    return hn::IfThenElse(hn::Eq(max, lowest), hn::Zero(d), max);
  });
}

struct Softmax {
  template <class Line, typename T>
  void operator()(const Line& line, T* y, const T* x, const T*) const {
    const hn::ScalableTag<T> d;
    const auto max = finite_max(d, line, x);
    const auto sum = line.sum(d, [&](auto total, auto at, auto column) HWY_ATTR {
      const auto power = exp_lanes(d, hn::Sub(load(d, x, at, -kInfinity<T>), max.at(d, column)));
      store(d, power, y, at);
      return hn::Add(total, power);
    });
    const auto scale = line.map(d, sum, [&](auto total) HWY_ATTR {
      const auto empty = hn::Eq(total, hn::Zero(d));
      return hn::IfThenZeroElse(empty, hn::Div(hn::Set(d, T{1}), total));
    });
    line.for_each(d, [&](auto at, auto column) HWY_ATTR {
      store(d, hn::Mul(load(d, y, at), scale.at(d, column)), y, at);
    });
  }
};

struct LogSoftmax {
  template <class Line, typename T>
  void operator()(const Line& line, T* y, const T* x, const T*) const {
    const hn::ScalableTag<T> d;
    const auto max = finite_max(d, line, x);
    const auto sum = line.sum(d, [&](auto total, auto at, auto column) HWY_ATTR {
      const auto offset = hn::Sub(load(d, x, at, -kInfinity<T>), max.at(d, column));
      return hn::Add(total, exp_lanes(d, offset));
    });
    // The logarithm of a sum of 0 is -infinity: rows of -infinity stay as they are.
    const auto log_sum = line.map(d, line.log(d, sum), [&](auto value) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(value, hn::Set(d, -kInfinity<T>)), value);
    });
    // One after the other: beside a large maximum the logarithm would vanish.
    line.for_each(d, [&](auto at, auto column) HWY_ATTR {
      const auto offset = hn::Sub(load(d, x, at), max.at(d, column));
      store(d, hn::Sub(offset, log_sum.at(d, column)), y, at);
    });
  }
};

struct SoftmaxBackward {
  template <class Line, typename T>
  void operator()(const Line& line, T* dx, const T* y, const T* dy) const {
    const hn::ScalableTag<T> d;
    const auto sum = line.sum(d, [&](auto total, auto at, auto) HWY_ATTR {
      return hn::MulAdd(load(d, dy, at), load(d, y, at), total);
    });
    line.for_each(d, [&](auto at, auto column) HWY_ATTR {
      const auto offset = hn::Sub(load(d, dy, at), sum.at(d, column));
      store(d, hn::Mul(load(d, y, at), offset), dx, at);
    });
  }
};

struct LogSoftmaxBackward {
  template <class Line, typename T>
  void operator()(const Line& line, T* dx, const T* y, const T* dy) const {
    const hn::ScalableTag<T> d;
    const auto lowest = hn::Set(d, -kInfinity<T>);
    const auto sum = line.sum(
        d, [&](auto total, auto at, auto) HWY_ATTR { return hn::Add(total, load(d, dy, at)); });
    // How many elements are not -infinity.
    const auto others = line.sum(d, [&](auto total, auto at, auto) HWY_ATTR {
      const auto is_lowest = hn::Eq(load(d, y, at, -kInfinity<T>), lowest);
      return hn::Add(total, hn::IfThenZeroElse(is_lowest, hn::Set(d, T{1})));
    });
    line.for_each(d, [&](auto at, auto column) HWY_ATTR {
      const auto power = exp_lanes(d, load(d, y, at));
      const auto value = hn::NegMulAdd(power, sum.at(d, column), load(d, dy, at));
      const auto empty = hn::Eq(others.at(d, column), hn::Zero(d));
      store(d, hn::IfThenZeroElse(empty, value), dx, at);
    });
  }
};

// Task i of the row kernels: row i where rows are dense, else up to kPanel rows side by side.
template <class Kernel, typename T>
void run_tasks(T* out, const T* a, const T* b, Rows rows, int64_t first, int64_t last) {
  const Kernel kernel;
  if (rows.inner == 1) {
    for (int64_t i = first * rows.length; i < last * rows.length; i += rows.length)
      kernel(Along{rows.length}, out + i, a + i, b + i);
    return;
  }
  const int64_t panels = (rows.inner + kPanel - 1) / kPanel;
  for (int64_t task = first; task < last; ++task) {
    const int64_t column = task % panels * kPanel;
    const int64_t start = task / panels * rows.length * rows.inner + column;
    const Across line{rows.length, rows.inner, std::min(kPanel, rows.inner - column)};
    kernel(line, out + start, a + start, b + start);
  }
}

template <class Kernel>
void run_kernel(Array& out, const Array& a, const Array& b, Rows rows, int64_t first,
                int64_t last) {
  dispatch_floating("softmax", a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_tasks<Kernel>(out.data<T>(), a.data<T>(), b.data<T>(), rows, first, last);
  });
}

void softmax_tasks(Array& y, const Array& x, const Array& unused, Rows rows, int64_t first,
                   int64_t last) {
  run_kernel<Softmax>(y, x, unused, rows, first, last);
}
void log_softmax_tasks(Array& y, const Array& x, const Array& unused, Rows rows, int64_t first,
                       int64_t last) {
  run_kernel<LogSoftmax>(y, x, unused, rows, first, last);
}
void softmax_backward_tasks(Array& dx, const Array& y, const Array& dy, Rows rows, int64_t first,
                            int64_t last) {
  run_kernel<SoftmaxBackward>(dx, y, dy, rows, first, last);
}
void log_softmax_backward_tasks(Array& dx, const Array& y, const Array& dy, Rows rows,
                                int64_t first, int64_t last) {
  run_kernel<LogSoftmaxBackward>(dx, y, dy, rows, first, last);
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
  constexpr int64_t kGrain = 1 << 13, kPanel = HWY_STATIC_DISPATCH(kPanel);
  const int64_t panels = rows.inner == 1 ? 1 : (rows.inner + kPanel - 1) / kPanel;
  const int64_t width = std::min(kPanel, rows.inner);
  parallel_for(0, rows.outer * panels, std::max<int64_t>(1, kGrain / (rows.length * width)),
               [&](int64_t first, int64_t last) { tasks(out, a, b, rows, first, last); });
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
