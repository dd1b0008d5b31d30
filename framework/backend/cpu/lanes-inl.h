// Loops over rows in vectors, compiled once for each instruction set: include after highway.h.
#if defined(GS_BACKEND_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_LANES_INL_H_
#undef GS_BACKEND_CPU_LANES_INL_H_
#else
#define GS_BACKEND_CPU_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// A place in a row: a whole vector from `start` on, or only `count` of its lanes.
struct Whole {
  int64_t start;
};
struct Part {
  int64_t start, count;
};

// Calls body(place) for the vectors that cover `length` elements; the last may be a Part.
template <class D, class Body>
HWY_INLINE void for_each_vector(D d, int64_t length, Body&& body) {
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= length; i += lanes) body(Whole{i});
  if (i < length) body(Part{i, length - i});
}

// Folds the vectors that cover `length` elements: step(result, place) takes one into a result that
// starts as `initial`, join(a, b) makes one of two. Four results at a time, since each step would
// wait for the one before; the order depends on the length alone.
template <class D, class V, class Step, class Join>
HWY_INLINE V fold_vectors(D d, int64_t length, V initial, Step&& step, Join&& join) {
  const int64_t lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  V a = initial, b = initial, c = initial, e = initial;
  int64_t i = 0;
  for (; i + 4 * lanes <= length; i += 4 * lanes) {
    a = step(a, Whole{i});
    b = step(b, Whole{i + lanes});
    c = step(c, Whole{i + 2 * lanes});
    e = step(e, Whole{i + 3 * lanes});
  }
  for (; i + lanes <= length; i += lanes) a = step(a, Whole{i});
  if (i < length) b = step(b, Part{i, length - i});
  return join(join(a, b), join(c, e));
}
// The same for sums.
template <class D, class Step>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> sum_vectors(D d, int64_t length, Step&& step) {
  namespace hn = hwy::HWY_NAMESPACE;
  return fold_vectors(d, length, hn::Zero(d), step,
                      [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

// Loads what is at a place; the lanes beyond a Part are `filler`.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const T* x, Whole place, T = 0) {
  return hwy::HWY_NAMESPACE::LoadU(d, x + place.start);
}

template <class D, class V, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store(D d, V value, T* y, Whole place) {
  hwy::HWY_NAMESPACE::StoreU(value, d, y + place.start);
}

// The value with 0 in the lanes beyond a Part.
template <class D, class V>
HWY_INLINE V inside(D, V value, Whole) {
  return value;
}
template <class D, class V>
HWY_INLINE V inside(D d, V value, Part place) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(place.count)), value);
}

#if HWY_MAX_BYTES >= 32  // has loads and stores that leave masked memory alone

template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const T* x, Part place, T filler = 0) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto mask = hn::FirstN(d, static_cast<size_t>(place.count));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + place.start), hn::Set(d, filler));
}

template <class D, class V, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store(D d, V value, T* y, Part place) {
  namespace hn = hwy::HWY_NAMESPACE;
  hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(place.count)), d, y + place.start);
}

#else

template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const T* x, Part place, T filler = 0) {
  HWY_ALIGN T lanes[hwy::HWY_NAMESPACE::MaxLanes(d)];
  std::fill(std::copy_n(x + place.start, place.count, lanes), std::end(lanes), filler);
  return hwy::HWY_NAMESPACE::Load(d, lanes);
}

template <class D, class V, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store(D d, V value, T* y, Part place) {
  HWY_ALIGN T lanes[hwy::HWY_NAMESPACE::MaxLanes(d)];
  hwy::HWY_NAMESPACE::Store(value, d, lanes);
  std::copy_n(lanes, place.count, y + place.start);
}

#endif

// The largest elements, one a lane; a NaN may count as the smallest.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> max_vectors(D d, const T* x, int64_t length) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  return fold_vectors(
      d, length, hn::Set(d, kLowest),
      [&](auto max, auto at) HWY_ATTR { return hn::Max(max, load(d, x, at, kLowest)); },
      [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); });
}

// The sum and the largest of all lanes.
template <class D, class V>
HWY_INLINE hwy::HWY_NAMESPACE::TFromD<D> sum_of(D d, V value) {
  return hwy::HWY_NAMESPACE::GetLane(hwy::HWY_NAMESPACE::SumOfLanes(d, value));
}
template <class D, class V>
HWY_INLINE hwy::HWY_NAMESPACE::TFromD<D> max_of(D d, V value) {
  return hwy::HWY_NAMESPACE::GetLane(hwy::HWY_NAMESPACE::MaxOfLanes(d, value));
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
