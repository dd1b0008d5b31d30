#include "framework/backend/softmax.h"

#include <cmath>
#include <limits>

#include "framework/backend/cuda/rows.cuh"

// Bound by memory: a row is read once and then comes from the caches.
namespace gs::backend {
namespace {

template <typename C>
constexpr C kLowest = -std::numeric_limits<C>::infinity();

// Calls body(element of each x) for all elements that are this thread's.
template <typename AnyLine, typename Body, typename... T>
__device__ void for_each_element(const AnyLine& line, Body body, const T*... x) {
  line.for_each([&](int64_t at, int64_t) {
    const auto take = [&](const auto&... packs) {
#pragma unroll
      for (int j = 0; j < AnyLine::kPack; ++j) body(load(packs.values + j)...);
    };
    take(load_pack<T, AnyLine::kPack>(x + at)...);
  });
}

// y = function(element of each x); y may be an x.
template <typename T, typename AnyLine, typename Function, typename... X>
__device__ void write_elements(const AnyLine& line, T* y, Function function, const X*... x) {
  line.for_each([&](int64_t at, int64_t) {
    const auto take = [&](const auto&... packs) {
      Pack<T, AnyLine::kPack> result;
#pragma unroll
      for (int j = 0; j < AnyLine::kPack; ++j)
        store(result.values + j, function(load(packs.values + j)...));
      store_pack(y + at, result);
    };
    take(load_pack<X, AnyLine::kPack>(x + at)...);
  });
}

// The largest element, or 0 where all are -infinity: x minus it is then -infinity, not NaN.
template <typename T, typename AnyLine, typename C = Compute<T>>
__device__ C finite_max(const AnyLine& line, const T* x) {
  C max = kLowest<C>;
  const auto take = [&](C value) { max = Larger{}(value, max); };
  for_each_element(line, take, x);
  max = line.reduce(max, Larger{}, kLowest<C>);
  return max == kLowest<C> ? C{0} : max;
}

template <typename T, typename AnyLine, typename C = Compute<T>>
__device__ C sum_powers(const AnyLine& line, const T* x, C max) {
  C sum = 0;
  const auto take = [&](C value) { sum += std::exp(value - max); };
  for_each_element(line, take, x);
  return line.reduce(sum, Add{}, C{0});
}

template <typename T>
struct Softmax {
  using C = Compute<T>;
  T* y;
  const T* x;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    const C max = finite_max(line, x), sum = sum_powers(line, x, max);
    const C scale = sum == 0 ? C{0} : 1 / sum;
    const auto share = [&](C value) { return std::exp(value - max) * scale; };
    write_elements(line, y, share, x);
  }
};

template <typename T>
struct LogSoftmax {
  using C = Compute<T>;
  T* y;
  const T* x;

  template <typename AnyLine>
  __device__ void operator()(const AnyLine& line) const {
    const C max = finite_max(line, x), sum = sum_powers(line, x, max);
    const C log_sum = sum == 0 ? C{0} : std::log(sum);
    // One after the other: beside a large maximum the logarithm would vanish.
    const auto log_share = [&](C value) { return value - max - log_sum; };
    write_elements(line, y, log_share, x);
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
    const auto take = [&](C value, C slope) { sum += slope * value; };
    for_each_element(line, take, y, dy);
    sum = line.reduce(sum, Add{}, C{0});
    const auto gradient = [&](C value, C slope) { return value * (slope - sum); };
    write_elements(line, dx, gradient, y, dy);
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
    const auto take = [&](C value, C slope) {
      sum += slope;
      others += value == kLowest<C> ? C{0} : C{1};
    };
    for_each_element(line, take, y, dy);
    sum = line.reduce(sum, Add{}, C{0});
    const bool empty = line.reduce(others, Add{}, C{0}) == 0;
    const auto gradient = [&](C value, C slope) {
      return empty ? C{0} : slope - std::exp(value) * sum;
    };
    write_elements(line, dx, gradient, y, dy);
  }
};

template <template <typename> typename Body, typename... Arrays>
void run(const char* operation, Cuda device, Rows rows, Array& out, const Arrays&... x) {
  if (out.elements() == 0) return;
  dispatch_element(operation, out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run_rows<kPackSize<T>>(operation, device, Pieces::whole(rows),
                           Body<T>{elements_of<T>(out), elements_of<T>(x)...});
  });
}

}  // namespace

void softmax(Cuda device, Array& y, const Array& x, Rows rows) {
  run<Softmax>("softmax", device, rows, y, x);
}
void softmax_backward(Cuda device, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run<SoftmaxBackward>("softmax", device, rows, dx, y, dy);
}
void log_softmax(Cuda device, Array& y, const Array& x, Rows rows) {
  run<LogSoftmax>("log_softmax", device, rows, y, x);
}
void log_softmax_backward(Cuda device, Array& dx, const Array& y, const Array& dy, Rows rows) {
  run<LogSoftmaxBackward>("log_softmax", device, rows, dx, y, dy);
}

}  // namespace gs::backend
