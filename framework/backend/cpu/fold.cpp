#include "framework/backend/cpu/fold.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/fold.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory: one read of x. A row, or a tile of rows side by side, is cut into pieces of a
// fixed length; pieces are folded in any order, and their results joined in one.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Elements of one type as vectors of another.
template <class D, class Place>
HWY_INLINE hn::Vec<D> load_wide(D d, const float* x, Place place) {
  if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    return load(d, x, place);
  } else {
    return hn::PromoteTo(d, load(hn::Rebind<float, D>(), x, place));
  }
}
template <class D, class Place>
HWY_INLINE hn::Vec<D> load_wide(D d, const double* x, Place place) {
  return load(d, x, place);
}

// step() takes one vector in, join() two results together.
template <typename T>
struct SumFold {
  using Result = double;
  static constexpr double kInitial = 0;
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::Add(a, b);
  }
  template <class D, class V>
  static HWY_INLINE double join_lanes(D d, V value) {
    return hn::GetLane(hn::SumOfLanes(d, value));
  }
};
// Of the lanes of an extremum: their reduction leaves NaN out.
template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE T nan_or(D d, V value, T extremum) {
  return hn::AllFalse(d, hn::IsNaN(value)) ? extremum : std::numeric_limits<T>::quiet_NaN();
}
template <typename T>
struct Sum : SumFold<T> {
  template <class D, class V>
  static HWY_INLINE V step(D, V sum, V x, V) {
    return hn::Add(sum, x);
  }
};
template <typename T>
struct Squares : SumFold<T> {
  template <class D, class V>
  static HWY_INLINE V step(D, V sum, V x, V mean) {
    const V deviation = hn::Sub(x, mean);
    return hn::MulAdd(deviation, deviation, sum);
  }
};
template <typename T>
struct Exponentials : SumFold<T> {
  template <class D, class V>
  static HWY_INLINE V step(D d, V sum, V x, V max) {
    // x and max are exact in T, and their difference is rounded once either way.
    if constexpr (std::is_same_v<T, float>) {
      const hn::Rebind<float, D> narrow;
      const auto power = exp_lanes(narrow, hn::DemoteTo(narrow, hn::Sub(x, max)));
      return hn::Add(sum, hn::PromoteTo(d, power));
    } else {
      return hn::Add(sum, exp_lanes(d, hn::Sub(x, max)));
    }
  }
};
template <typename T>
struct Matches : SumFold<T> {
  template <class D, class V>
  static HWY_INLINE V step(D d, V sum, V x, V value) {
    const auto both_nan = hn::And(hn::IsNaN(x), hn::IsNaN(value));
    return hn::Add(sum, hn::IfThenElseZero(hn::Or(hn::Eq(x, value), both_nan), hn::Set(d, 1.0)));
  }
};
// NaN wins over every number, and stays.
template <typename T>
struct Max {
  using Result = T;
  static constexpr T kInitial = -std::numeric_limits<T>::infinity();
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class D, class V>
  static HWY_INLINE T join_lanes(D d, V value) {
    return nan_or(d, value, hn::GetLane(hn::MaxOfLanes(d, value)));
  }
  template <class D, class V>
  static HWY_INLINE V step(D d, V max, V x, V) {
    return join(d, max, x);
  }
};
template <typename T>
struct Min {
  using Result = T;
  static constexpr T kInitial = std::numeric_limits<T>::infinity();
  template <class D, class V>
  static HWY_INLINE V join(D, V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
  template <class D, class V>
  static HWY_INLINE T join_lanes(D d, V value) {
    return nan_or(d, value, hn::GetLane(hn::MinOfLanes(d, value)));
  }
  template <class D, class V>
  static HWY_INLINE V step(D d, V min, V x, V) {
    return join(d, min, x);
  }
};

// The fold of `count` elements one after another, with four independent chains.
template <class F, typename T, typename R = typename F::Result>
R fold_along(const T* x, int64_t count, R parameter) {
  const hn::ScalableTag<R> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto p = hn::Set(d, parameter);
  auto a = hn::Set(d, F::kInitial), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    a = F::step(d, a, load_wide(d, x, Whole{i}), p);
    b = F::step(d, b, load_wide(d, x, Whole{i + lanes}), p);
    c = F::step(d, c, load_wide(d, x, Whole{i + 2 * lanes}), p);
    e = F::step(d, e, load_wide(d, x, Whole{i + 3 * lanes}), p);
  }
  for (; i + lanes <= count; i += lanes) a = F::step(d, a, load_wide(d, x, Whole{i}), p);
  if (i < count) {
    const auto step = F::step(d, a, load_wide(d, x, Part{i, count - i}), p);
    a = hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(count - i)), step, a);
  }
  return F::join_lanes(d, F::join(d, F::join(d, a, b), F::join(d, c, e)));
}

// The folds of `width` rows side by side, `stride` from one element of a row to the next.
template <class F, typename T, typename R = typename F::Result>
void fold_across(R* y, const T* x, const R* parameter, int64_t length, int64_t stride,
                 int64_t width) {
  const hn::ScalableTag<R> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto initial = hn::Set(d, F::kInitial);
  const auto parameter_at = [&](auto place) HWY_ATTR {
    return parameter == nullptr ? initial : load(d, parameter, place);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {  // as wide as a cache line
    const Whole a{i}, b{i + lanes}, c{i + 2 * lanes}, e{i + 3 * lanes};
    const auto pa = parameter_at(a), pb = parameter_at(b), pc = parameter_at(c),
               pe = parameter_at(e);
    auto fa = initial, fb = initial, fc = initial, fe = initial;
    const T* row = x;
    for (int64_t l = 0; l < length; ++l, row += stride) {
      fa = F::step(d, fa, load_wide(d, row, a), pa);
      fb = F::step(d, fb, load_wide(d, row, b), pb);
      fc = F::step(d, fc, load_wide(d, row, c), pc);
      fe = F::step(d, fe, load_wide(d, row, e), pe);
    }
    store(d, fa, y, a);
    store(d, fb, y, b);
    store(d, fc, y, c);
    store(d, fe, y, e);
  }
  for_each_vector(d, width - i, [&](auto place) HWY_ATTR {
    place.start += i;
    const auto p = parameter_at(place);
    auto result = initial;
    const T* row = x;
    for (int64_t l = 0; l < length; ++l, row += stride)
      result = F::step(d, result, load_wide(d, row, place), p);
    store(d, result, y, place);
  });
}

// Writes the results of tasks to y (outer, pieces, inner).
template <class F, typename T, typename R = typename F::Result>
void run_tasks(Array& y_array, const T* x, const R* parameter, const FoldTasks& tasks,
               int64_t first, int64_t last) {
  const Rows& rows = tasks.rows;
  R* const y = y_array.data<R>();
  for (int64_t task = first; task < last; ++task) {
    const int64_t tile = task % tasks.tiles, piece = task / tasks.tiles % tasks.pieces;
    const int64_t outer = task / tasks.tiles / tasks.pieces;
    const int64_t start = piece * tasks.length, column = tile * tasks.width;
    const int64_t length = HWY_MIN(tasks.length, rows.length - start);
    const int64_t width = HWY_MIN(tasks.width, rows.inner - column);
    const T* const in = x + (outer * rows.length + start) * rows.inner + column;
    R* const out = y + (outer * tasks.pieces + piece) * rows.inner + column;
    const R* const p = parameter == nullptr ? nullptr : parameter + outer * rows.inner + column;
    if (rows.inner == 1) {
      *out = fold_along<F>(in, length, p == nullptr ? R(0) : *p);
    } else {
      fold_across<F>(out, in, p, length, rows.inner, width);
    }
  }
}

template <typename T>
void run_fold(Fold fold, Array& y, const Array& x_array, const Array& parameter,
              const FoldTasks& tasks, int64_t first, int64_t last) {
  const T* const x = x_array.data<T>();
  const double* const p = parameter.defined() ? parameter.data<double>() : nullptr;
  switch (fold) {
    case Fold::kSum:
      return run_tasks<Sum<T>>(y, x, p, tasks, first, last);
    case Fold::kSquares:
      return run_tasks<Squares<T>>(y, x, p, tasks, first, last);
    case Fold::kExponentials:
      return run_tasks<Exponentials<T>>(y, x, p, tasks, first, last);
    case Fold::kMatches:
      return run_tasks<Matches<T>>(y, x, p, tasks, first, last);
    case Fold::kMax:
      return run_tasks<Max<T>, T, T>(y, x, nullptr, tasks, first, last);
    case Fold::kMin:
      return run_tasks<Min<T>, T, T>(y, x, nullptr, tasks, first, last);
  }
}

void fold_tasks(Fold fold, Array& y, const Array& x, const Array& parameter, const FoldTasks& tasks,
                int64_t first, int64_t last) {
  if (x.dtype() == kFloat32) {
    run_fold<float>(fold, y, x, parameter, tasks, first, last);
  } else {
    run_fold<double>(fold, y, x, parameter, tasks, first, last);
  }
}

// The pieces of each row of `parts` (outer, pieces, inner), joined in their order.
void join_pieces(Fold fold, Array& y, const Array& parts, Rows rows) {
  FoldTasks tasks{rows, 1, rows.length, 1, rows.inner};
  if (fold == Fold::kMax || fold == Fold::kMin) {
    fold_tasks(fold, y, parts, {}, tasks, 0, rows.outer);
  } else {
    run_tasks<Sum<double>>(y, parts.data<double>(), static_cast<const double*>(nullptr), tasks, 0,
                           rows.outer);
  }
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(fold_tasks);
HWY_EXPORT(join_pieces);

FoldTasks tasks_for(Rows rows) {
  constexpr int64_t kElements = 1 << 15, kWidth = 1024;
  const int64_t width = std::min(kWidth, rows.inner);
  const int64_t length = kElements / width;
  const int64_t pieces = std::max<int64_t>(1, (rows.length + length - 1) / length);
  return {rows, pieces, length, (rows.inner + width - 1) / width, width};
}

}  // namespace

Array fold_rows(Fold fold, const Array& x, Rows rows, const Array& parameter) {
  const bool extremum = fold == Fold::kMax || fold == Fold::kMin;
  const DType dtype = extremum ? x.dtype() : kFloat64;
  if (rows.count() == 0) return Array::empty({0}, dtype);
  const FoldTasks tasks = tasks_for(rows);
  Array parts = Array::empty({rows.outer * tasks.pieces * rows.inner}, dtype);
  const int64_t each = std::max<int64_t>(1, std::min(tasks.length, rows.length) * tasks.width);
  parallel_for(0, tasks.count(), std::max<int64_t>(1, tasks.length * tasks.width / each),
               [&](int64_t first, int64_t last) {
                 HWY_DYNAMIC_DISPATCH(fold_tasks)(fold, parts, x, parameter, tasks, first, last);
               });
  if (tasks.pieces == 1) return parts;
  Array y = Array::empty({rows.count()}, dtype);
  HWY_DYNAMIC_DISPATCH(join_pieces)(fold, y, parts, {rows.outer, tasks.pieces, rows.inner});
  return y;
}

}  // namespace gs::backend
#endif
