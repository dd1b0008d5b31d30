// Elementary functions of vectors of either floating type, compiled once for each instruction set:
// include after highway.h.
#if defined(GS_BACKEND_CPU_EXP_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_EXP_LANES_INL_H_
#undef GS_BACKEND_CPU_EXP_LANES_INL_H_
#else
#define GS_BACKEND_CPU_EXP_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "framework/backend/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// Lane by lane.
template <class D, class V, class Function>
HWY_INLINE V apply_lanes(D d, V x, Function function) {
  namespace hn = hwy::HWY_NAMESPACE;
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}

template <class D, class V, class Function>
HWY_INLINE V apply_lanes(D d, V x, V y, Function function) {
  namespace hn = hwy::HWY_NAMESPACE;
  HWY_ALIGN hn::TFromD<D> left[hn::MaxLanes(d)], right[hn::MaxLanes(d)];
  hn::Store(x, d, left);
  hn::Store(y, d, right);
  for (size_t i = 0; i < hn::Lanes(d); ++i) left[i] = function(left[i], right[i]);
  return hn::Load(d, left);
}

// e^x and the others below: in vectors for float, by <cmath> for double.
template <class D, class V>
HWY_INLINE V exp_lanes(D d, V x) {
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    return exp(d, x);
  } else {
    return apply_lanes(d, x, [](T value) { return std::exp(value); });
  }
}

// e^x for x <= 0; results that are subnormal in float32 may be 0.
template <class D, class V>
HWY_INLINE V exp_of_nonpositive_lanes(D d, V x) {
  if constexpr (std::is_same_v<hwy::HWY_NAMESPACE::TFromD<D>, float>) {
    return exp_of_nonpositive(d, x);
  } else {
    return exp_lanes(d, x);
  }
}

template <class D, class V>
HWY_INLINE V log_lanes(D d, V x) {
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    return log(d, x);
  } else {
    return apply_lanes(d, x, [](T value) { return std::log(value); });
  }
}

template <class D, class V>
HWY_INLINE V tanh_lanes(D d, V x) {
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    return tanh(d, x);
  } else {
    return apply_lanes(d, x, [](T value) { return std::tanh(value); });
  }
}

template <class D, class V>
HWY_INLINE V normal_share_lanes(D d, V x) {
  using T = hwy::HWY_NAMESPACE::TFromD<D>;
  if constexpr (std::is_same_v<T, float>) {
    return normal_share(d, x);
  } else {
    return apply_lanes(d, x,
                       [](T value) { return T(0.5) * std::erfc(value * T(-0.70710678118654752)); });
  }
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
