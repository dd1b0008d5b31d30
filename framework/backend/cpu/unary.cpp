#include "framework/backend/unary.h"

#include <type_traits>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// The formulas: value(d, x), and gradient(d, kept, dy) from x or y (see kept_for_gradient).
struct Relu {
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);  // NaN stays
  }
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V y, V dy) {
    return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), dy);
  }
};

// x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel, 2016)
struct Gelu {
  template <class D, class V>
  static HWY_INLINE V probability(D d, V x) {
    const auto half = constant(d, 0.5);
    return hn::MulAdd(half, erf_lanes(d, hn::Mul(x, constant(d, 0.70710678118654752))), half);
  }
  template <class D, class V>
  static HWY_INLINE V value(D d, V x) {
    return hn::Mul(x, probability(d, x));
  }
  // Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
  template <class D, class V>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    const auto power = exp_lanes(d, hn::Mul(constant(d, -0.5), hn::Mul(x, x)));
    const auto density = hn::Mul(constant(d, 0.39894228040143268), power);
    return hn::Mul(dy, hn::MulAdd(x, density, probability(d, x)));
  }
};

template <class Body>
void with_formula(Unary function, Body&& body) {
  switch (function) {
    case Unary::kRelu:
      return body(Relu());
    case Unary::kGelu:
      return body(Gelu());
  }
}

template <class Formula, typename T>
void value_range(Formula, T* y, const T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, count,
                  [&](auto at) HWY_ATTR { store(d, Formula::value(d, load(d, x, at)), y, at); });
}

template <class Formula, typename T>
void gradient_range(Formula, T* dx, const T* kept, const T* dy, int64_t count) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    store(d, Formula::gradient(d, load(d, kept, at), load(d, dy, at)), dx, at);
  });
}

void values(Unary function, Array& y, const Array& x, int64_t first, int64_t last) {
  with_formula(function, [&](auto formula) {
    dispatch_floating("unary", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      value_range(formula, y.data<T>() + first, x.data<T>() + first, last - first);
    });
  });
}

void gradients(Unary function, Array& dx, const Array& kept, const Array& dy, int64_t first,
               int64_t last) {
  with_formula(function, [&](auto formula) {
    dispatch_floating("unary", dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      gradient_range(formula, dx.data<T>() + first, kept.data<T>() + first, dy.data<T>() + first,
                     last - first);
    });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(values);
HWY_EXPORT(gradients);

// Functions of <cmath> and of polynomials take some ten times as long as a comparison.
int64_t grain_of(Unary function) { return function == Unary::kRelu ? 1 << 15 : 1 << 12; }

}  // namespace

void unary(Cpu, Unary function, Array& y, const Array& x) {
  parallel_for(0, x.elements(), grain_of(function), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(values)(function, y, x, first, last);
  });
}

void unary_gradient(Cpu, Unary function, Array& dx, const Array& kept, const Array& dy) {
  parallel_for(0, dx.elements(), grain_of(function), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(gradients)(function, dx, kept, dy, first, last);
  });
}

}  // namespace gs::backend
#endif
