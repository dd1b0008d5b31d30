#include "framework/backend/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/backend/cpu/fold.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/logsumexp.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by the arithmetic of the exponentials.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V slope(D d, V x, V y, V dy) {
  const auto nothing = hn::Eq(y, hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity()));
  return hn::IfThenZeroElse(nothing, hn::Mul(dy, exp_lanes(d, hn::Sub(x, y))));
}

// Lines first to last - 1 of x (outer, length, inner): `inner` elements, each of a row of its own,
// or where inner is 1 the whole row.
template <typename T>
void write_lines(T* dx, const T* dy, const T* x, const T* y, Rows rows, int64_t first,
                 int64_t last) {
  const hn::ScalableTag<T> d;
  if (rows.inner == 1) {
    for (int64_t row = first; row < last; ++row) {
      const int64_t start = row * rows.length;
      const auto value = hn::Set(d, y[row]), gradient = hn::Set(d, dy[row]);
      for_each_vector(d, rows.length, [&](auto at) HWY_ATTR {
        store(d, slope(d, load(d, x + start, at), value, gradient), dx + start, at);
      });
    }
    return;
  }
  for (int64_t line = first; line < last; ++line) {
    const int64_t start = line * rows.inner, row = line / rows.length * rows.inner;
    for_each_vector(d, rows.inner, [&](auto at) HWY_ATTR {
      const auto value = load(d, y + row, at), gradient = load(d, dy + row, at);
      store(d, slope(d, load(d, x + start, at), value, gradient), dx + start, at);
    });
  }
}

void write_gradients(Array& dx, const Array& dy, const Array& x, const Array& y, Rows rows,
                     int64_t first, int64_t last) {
  dispatch_floating("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    write_lines(dx.data<T>(), dy.data<T>(), x.data<T>(), y.data<T>(), rows, first, last);
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {

HWY_EXPORT(write_gradients);

void logsumexp(Cpu cpu, Array& y, const Array& x, Rows rows) {
  // With 0 for an infinite maximum no infinity is subtracted from another.
  max(cpu, y, x, rows);
  Array shift = y.to(kFloat64);
  double* const by = shift.data<double>();
  std::replace_if(
      by, by + y.elements(), [](double value) { return std::isinf(value); }, 0.0);
  const Array sums = fold_rows(Fold::kExponentials, x, rows, shift);
  const double* const total = sums.data<double>();
  dispatch_floating("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    parallel_for(0, y.elements(), 1 << 12, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        out[row] = static_cast<T>(by[row] + std::log(total[row]));
    });
  });
}

void logsumexp_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& y,
                        Rows rows) {
  if (x.elements() == 0) return;
  constexpr int64_t kGrain = 1 << 13;
  const bool dense = rows.inner == 1;
  const int64_t lines = dense ? rows.outer : rows.outer * rows.length;
  const int64_t grain = std::max<int64_t>(1, kGrain / (dense ? rows.length : rows.inner));
  parallel_for(0, lines, grain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(write_gradients)(dx, dy, x, y, rows, first, last);
  });
}

}  // namespace gs::backend
#endif
