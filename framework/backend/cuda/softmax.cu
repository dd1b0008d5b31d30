#include "framework/backend/softmax.h"

#include <cmath>
#include <limits>

#include "framework/backend/cuda/rows.cuh"

// Bound by memory: a row is read once and then comes from the caches.
namespace gs::backend {
namespace {

template <typename C>
constexpr C kLowest = -std::numeric_limits<C>::infinity();

// Calls body(element) for all elements of x that are this thread's.
template <typename T, typename AnyLine, typename Body>
__device__ void for_each_element(const AnyLine& line, const T* x, Body body) {
  line.for_each([&](int64_t at, int64_t) {
    const auto pack = load_pack<T, AnyLine::kPack>(x + at);
#pragma unroll
    for (int j = 0; j < AnyLine::kPack; ++j) body(load(pack.values + j));
  });
}

// y = function(a, b), element by element; y may be a or b.
template <typename T, typename AnyLine, typename Function>
__device__ void write_elements(const AnyLine& line, T* y, const T* a, const T* b,
                               Function function) {
  line.for_each([&](int64_t at, int64_t) {
    auto pack = load_pack<T, AnyLine::kPack>(a + at);
    const auto other = load_pack<T, AnyLine::kPack>(b + at);
#pragma unroll
    for (int j = 0; j < AnyLine::kPack; ++j)
      store(pack.values + j, function(load(pack.values + j), load(other.values + j)));
    store_pack(y + at, pack);
  });
}

// The largest element, or 0 where all are -infinity: x minus it is then -infinity, not NaN.
template <typename T, typename AnyLine, typename C = Compute<T>>
__device__ C finite_max(const AnyLine& line, const T* x) {
  C max = kLowest<C>;
  for_each_element(line, x, [&](C value) { max = Larger{}(value, max); });
  max = line.reduce(max, Larger{}, kLowest<C>);
  return max == kLowest<C> ? C{0} : max;
}

template <typename T, typename AnyLine, typename C = Compute<T>>
__device__ C sum_powers(const AnyLine& line, const T* x, C max) {
  C sum = 0;
  for_each_element(line, x, [&](C value) { sum += std::exp(value - max); });
  return line.reduce(sum, Add{}, C{0});
}

template <typename T>
struct Softmax {
  using C = Compute<T>;
  T* y;
  const T* x;
  const T* unused;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    const C max = finite_max(line, x), sum = sum_powers(line, x, max);
    const C scale = sum == 0 ? C{0} : 1 / sum;
    write_elements(line, y, x, x, [&](C value, C) { return std::exp(value - max) * scale; });
  }
};

template <typename T>
struct LogSoftmax {
  using C = Compute<T>;
  T* y;
  const T* x;
  const T* unused;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    const C max = finite_max(line, x), sum = sum_powers(line, x, max);
    const C log_sum = sum == 0 ? C{0} : std::log(sum);
    // One after the other: beside a large maximum the logarithm would vanish.
    write_elements(line, y, x, x, [&](C value, C) { return value - max - log_sum; });
  }
};

template <typename T>
struct SoftmaxBackward {
  using C = Compute<T>;
  T* dx;
  const T* y;
  const T* dy;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    C sum = 0;
    line.for_each([&](int64_t at, int64_t) {
      const auto value = load_pack<T, AnyLine::kPack>(y + at);
      const auto slope = load_pack<T, AnyLine::kPack>(dy + at);
#pragma unroll
      for (int j = 0; j < AnyLine::kPack; ++j)
        sum += load(slope.values + j) * load(value.values + j);
    });
    sum = line.reduce(sum, Add{}, C{0});
    write_elements(line, dx, y, dy, [&](C value, C slope) { return value * (slope - sum); });
  }
};

template <typename T>
struct LogSoftmaxBackward {
  using C = Compute<T>;
  T* dx;
  const T* y;
  const T* dy;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    C sum = 0, others = 0;  // others: how many elements are not -infinity
    for_each_element(line, dy, [&](C slope) { sum += slope; });
    for_each_element(line, y, [&](C value) { others += value == kLowest<C> ? C{0} : C{1}; });
    sum = line.reduce(sum, Add{}, C{0});
    const bool empty = line.reduce(others, Add{}, C{0}) == 0;
    write_elements(line, dx, y, dy,
                   [&](C value, C slope) { return empty ? C{0} : slope - std::exp(value) * sum; });
  }
};

template <template <typename> typename Body>
void run(const char* operation, Cuda device, Array& out, const Array& a, const Array& b,
         Rows rows) {
  if (out.elements() == 0) return;
  dispatch_element(operation, a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_rows<kPackSize<T>>(operation, device, Pieces::whole(rows),
                           Body<T>{elements_of<T>(out), elements_of<T>(a), elements_of<T>(b)});
  });
}

}  // namespace

void softmax(Cuda device, Array& y, const Array& x, Rows rows) {
  run<Softmax>("softmax", device, y, x, x, rows);
}
void softmax_backward(Cuda device, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run<SoftmaxBackward>("softmax", device, dx, y, dy, rows);
}
void log_softmax(Cuda device, Array& y, const Array& x, Rows rows) {
  run<LogSoftmax>("log_softmax", device, y, x, x, rows);
}
void log_softmax_backward(Cuda device, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run<LogSoftmaxBackward>("log_softmax", device, dx, y, dy, rows);
}

}  // namespace gs::backend
