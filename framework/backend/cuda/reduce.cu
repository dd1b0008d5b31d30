#include "framework/backend/reduce.h"

#include <cmath>
#include <limits>

#include "framework/backend/cuda/rows.cuh"

// Bound by memory: one read of x. Pieces of rows are folded side by side, and their results in a
// second step, in an order that depends on the sizes alone.
namespace gs::backend {
namespace {

template <typename T>
__device__ bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

// A fold takes elements in one by one, from kInitial on, and joins what threads have.
struct Sum {
  using Value = double;
  using Join = Add;
  static constexpr double kInitial = 0;
  template <typename T>
  __device__ double operator()(double sum, T x, int64_t, int64_t) const {
    return sum + static_cast<double>(x);
  }
};
struct Squares : Sum {
  const double* mean;
  template <typename T>
  __device__ double operator()(double sum, T x, int64_t row, int64_t) const {
    const double deviation = static_cast<double>(x) - mean[row];
    return sum + deviation * deviation;
  }
};
template <typename C>
struct Exponentials : Sum {
  const C* shift;
  __device__ double operator()(double sum, C x, int64_t row, int64_t) const {
    return sum + static_cast<double>(std::exp(x - shift[row]));
  }
};
template <typename T>
struct Matches : Sum {
  const T* value;
  __device__ double operator()(double sum, Compute<T> x, int64_t row, int64_t) const {
    return sum + (same(x, load(value + row)) ? 1.0 : 0.0);
  }
};
template <typename C>
struct Max {
  using Value = C;
  using Join = Larger;
  static constexpr C kInitial = -std::numeric_limits<C>::infinity();
  __device__ C operator()(C max, C x, int64_t, int64_t) const { return Larger{}(x, max); }
};
template <typename C>
struct Min {
  using Value = C;
  using Join = Smaller;
  static constexpr C kInitial = std::numeric_limits<C>::infinity();
  __device__ C operator()(C min, C x, int64_t, int64_t) const { return Smaller{}(x, min); }
};
template <typename C>
struct FirstPlace {
  using Value = int64_t;
  using Join = Smaller;
  static constexpr int64_t kInitial = std::numeric_limits<int64_t>::max();
  const C* value;
  __device__ int64_t operator()(int64_t first, C x, int64_t row, int64_t place) const {
    return place < first && same(x, value[row]) ? place : first;
  }
};
// Of the results of pieces, which are there.
template <typename Result, typename Operation>
struct Joined {
  using Value = Result;
  using Join = Operation;
  using Limits = std::numeric_limits<Value>;
  static constexpr Value kHighest = Limits::has_infinity ? Limits::infinity() : Limits::max();
  static constexpr Value kInitial = std::is_same_v<Operation, Add>      ? Value(0)
                                    : std::is_same_v<Operation, Larger> ? -kHighest
                                                                        : kHighest;
  __device__ Value operator()(Value a, Value b, int64_t, int64_t) const { return Join{}(b, a); }
};

// What becomes of a row's result.
enum class Form { kValue, kNumber, kQuotient, kMean, kPlace, kFinite, kLog };
template <typename T>
struct Output {
  Form form;
  void* y;
  double divisor = 1;
  const Compute<T>* shift = nullptr;

  template <typename Value>
  __device__ void operator()(int64_t row, Value value) const {
    switch (form) {
      case Form::kValue:  // as it is
        static_cast<Value*>(y)[row] = value;
        return;
      case Form::kNumber:
        return store(static_cast<T*>(y) + row, static_cast<Compute<T>>(value));
      case Form::kQuotient:
        return store(static_cast<T*>(y) + row,
                     static_cast<Compute<T>>(static_cast<double>(value) / divisor));
      case Form::kMean:  // a quotient in double
        static_cast<double*>(y)[row] = static_cast<double>(value) / divisor;
        return;
      case Form::kPlace:
        static_cast<int32_t*>(y)[row] = static_cast<int32_t>(value);
        return;
      case Form::kFinite: {  // or 0: then no infinity is subtracted from another
        const auto number = static_cast<Compute<T>>(value);
        static_cast<Compute<T>*>(y)[row] = std::isinf(number) ? 0 : number;
        return;
      }
      case Form::kLog:
        return store(static_cast<T*>(y) + row,
                     static_cast<Compute<T>>(static_cast<double>(shift[row]) +
                                             std::log(static_cast<double>(value))));
    }
  }
};

template <typename X, typename Fold, typename T>
struct FoldLine {
  const X* x;
  Fold fold;
  Output<T> output;

  __device__ void operator()(const Line<1>& line) const {
    typename Fold::Value value = Fold::kInitial;
    line.for_each(
        [&](int64_t at, int64_t place) { value = fold(value, load(x + at), line.row, place); });
    value = line.reduce(value, typename Fold::Join{}, Fold::kInitial);
    if (line.leads) output(line.part, value);
  }
};

template <typename T, typename Fold, typename Y>
void fold_rows(const char* operation, Cuda device, const T* x, Rows rows, Fold fold,
               const Output<Y>& output) {
  using Value = typename Fold::Value;
  const Pieces pieces = Pieces::of(rows);
  if (pieces.pieces == 1)
    return run_rows<1>(operation, device, pieces, FoldLine<T, Fold, Y>{x, fold, output});
  static_assert(sizeof(Value) <= sizeof(double));
  Array parts = Array::empty({pieces.count()}, kFloat64, Device::cuda(device.index));
  run_rows<1>(operation, device, pieces,
              FoldLine<T, Fold, Y>{x, fold, {Form::kValue, parts.raw()}});
  using Parts = Joined<Value, typename Fold::Join>;
  run_rows<1>(operation, device, Pieces::whole({rows.outer, pieces.pieces, rows.inner}),
              FoldLine<Value, Parts, Y>{static_cast<const Value*>(parts.raw()), {}, output});
}

// A number for each row, in the type that T is computed in.
template <typename T>
Array row_numbers(Cuda device, Rows rows) {
  return Array::empty({rows.count()}, dtype_of<Compute<T>>, Device::cuda(device.index));
}

// y[i] = function(x[i], row)
template <typename T, typename Function>
struct MapLine {
  T* y;
  const T* x;
  Function function;

  __device__ void operator()(const Line<1>& line) const {
    line.for_each([&](int64_t at, int64_t) { store(y + at, function(load(x + at), line.row)); });
  }
};
template <typename T, typename Function>
void map_rows(const char* operation, Cuda device, Array& y, const Array& x, Rows rows,
              Function function) {
  run_rows<1>(operation, device, Pieces::of(rows),
              MapLine<T, Function>{elements_of<T>(y), elements_of<T>(x), function});
}

template <typename T>
struct VarianceSlope {
  const T* dy;
  const double* mean;
  double divisor;
  __device__ Compute<T> operator()(Compute<T> x, int64_t row) const {
    const double factor = 2 * static_cast<double>(load(dy + row)) / divisor;
    return static_cast<Compute<T>>(factor * (static_cast<double>(x) - mean[row]));
  }
};
template <typename T>
struct ExtremumSlope {
  const T* dy;
  const T* y;
  const Compute<T>* count;
  __device__ Compute<T> operator()(Compute<T> x, int64_t row) const {
    return same(x, load(y + row)) ? load(dy + row) / count[row] : Compute<T>{0};
  }
};
template <typename T>
struct LogsumexpSlope {
  const T* dy;
  const T* y;
  __device__ Compute<T> operator()(Compute<T> x, int64_t row) const {
    const Compute<T> value = load(y + row);
    if (value == -std::numeric_limits<Compute<T>>::infinity()) return 0;
    return load(dy + row) * std::exp(x - value);
  }
};

}  // namespace

void sum(Cuda device, Array& y, const Array& x, Rows rows, double divisor) {
  dispatch_element("sum", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto sum_to = [&](auto y_zero) {
      fold_rows("sum", device, elements_of<T>(x), rows, Sum{},
                Output<decltype(y_zero)>{Form::kQuotient, y.raw(), divisor});
    };
    y.dtype() == x.dtype() ? sum_to(zero) : sum_to(Compute<T>{});
  });
}

void variance(Cuda device, Array& y, Array& mean, const Array& x, Rows rows, double divisor) {
  double* const means = mean.data<double>();
  dispatch_element("variance", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    fold_rows("variance", device, elements_of<T>(x), rows, Sum{},
              Output<T>{Form::kMean, means, static_cast<double>(rows.length)});
    fold_rows("variance", device, elements_of<T>(x), rows, Squares{{}, means},
              Output<T>{Form::kQuotient, y.raw(), divisor});
  });
}

void variance_backward(Cuda device, Array& dx, const Array& dy, const Array& x, const Array& mean,
                       Rows rows, double divisor) {
  dispatch_element("variance", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_rows<T>("variance", device, dx, x, rows,
                VarianceSlope<T>{elements_of<T>(dy), mean.data<double>(), divisor});
  });
}

void max(Cuda device, Array& y, const Array& x, Rows rows) {
  dispatch_element("max", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    fold_rows("max", device, elements_of<T>(x), rows, Max<Compute<T>>{},
              Output<T>{Form::kNumber, y.raw()});
  });
}

void min(Cuda device, Array& y, const Array& x, Rows rows) {
  dispatch_element("min", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    fold_rows("min", device, elements_of<T>(x), rows, Min<Compute<T>>{},
              Output<T>{Form::kNumber, y.raw()});
  });
}

void extremum_backward(Cuda device, Array& dx, const Array& dy, const Array& x, const Array& y,
                       Rows rows) {
  dispatch_element("max", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using C = Compute<T>;
    Array counts = row_numbers<T>(device, rows);
    fold_rows("max", device, elements_of<T>(x), rows, Matches<T>{{}, elements_of<T>(y)},
              Output<T>{Form::kFinite, counts.raw()});
    map_rows<T>("max", device, dx, x, rows,
                ExtremumSlope<T>{elements_of<T>(dy), elements_of<T>(y), counts.data<C>()});
  });
}

void argmax(Cuda device, Array& y, const Array& x, Rows rows) {
  dispatch_element("argmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using C = Compute<T>;
    Array largest = row_numbers<T>(device, rows);
    fold_rows("argmax", device, elements_of<T>(x), rows, Max<C>{},
              Output<T>{Form::kValue, largest.raw()});
    fold_rows("argmax", device, elements_of<T>(x), rows, FirstPlace<C>{largest.data<C>()},
              Output<T>{Form::kPlace, y.raw()});
  });
}

void logsumexp(Cuda device, Array& y, const Array& x, Rows rows) {
  dispatch_element("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using C = Compute<T>;
    Array shift = row_numbers<T>(device, rows);
    fold_rows("logsumexp", device, elements_of<T>(x), rows, Max<C>{},
              Output<T>{Form::kFinite, shift.raw()});
    fold_rows("logsumexp", device, elements_of<T>(x), rows, Exponentials<C>{{}, shift.data<C>()},
              Output<T>{Form::kLog, y.raw(), 1, shift.data<C>()});
  });
}

void logsumexp_backward(Cuda device, Array& dx, const Array& dy, const Array& x, const Array& y,
                        Rows rows) {
  dispatch_element("logsumexp", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map_rows<T>("logsumexp", device, dx, x, rows,
                LogsumexpSlope<T>{elements_of<T>(dy), elements_of<T>(y)});
  });
}

}  // namespace gs::backend
