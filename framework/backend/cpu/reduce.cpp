#include "framework/backend/reduce.h"

#include <algorithm>
#include <cmath>

#include "framework/backend/copy.h"
#include "framework/backend/cpu/fold.h"
#include "framework/core/parallel.h"

// Bound by memory; the folds themselves are in fold.cpp.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 14;

// Calls function(element, row) for every element of the rows.
template <typename Function>
void for_each_element(Rows rows, Function function) {
  if (rows.count() == 0 || rows.length == 0) return;
  if (rows.inner == 1) {
    parallel_for(0, rows.outer * rows.length, kGrain, [&](int64_t first, int64_t last) {
      while (first < last) {
        const int64_t row = first / rows.length, end = std::min(last, (row + 1) * rows.length);
        for (; first < end; ++first) function(first, row);
      }
    });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kGrain / rows.inner);
  parallel_for(0, rows.outer * rows.length, grain, [&](int64_t first, int64_t last) {
    for (int64_t line = first; line < last; ++line) {
      const int64_t start = line / rows.length * rows.inner;
      for (int64_t i = 0; i < rows.inner; ++i) function(line * rows.inner + i, start + i);
    }
  });
}

// y[row] = function(row), for small results.
template <typename T, typename Function>
void for_each_row(Array& y, Function function) {
  T* const out = y.data<T>();
  parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) out[row] = static_cast<T>(function(row));
  });
}

template <typename T>
bool same(T a, T b) {
  return a == b || (a != a && b != b);
}

}  // namespace

void sum(Cpu, Array& y, const Array& x, Rows rows, double divisor) {
  const Array sums = fold_rows(Fold::kSum, x, rows);
  const double* const total = sums.data<double>();
  dispatch_floating("sum", x.dtype(), [&](auto zero) {
    for_each_row<decltype(zero)>(y, [&](int64_t row) { return total[row] / divisor; });
  });
}

void variance(Cpu, Array& y, Array& mean, const Array& x, Rows rows, double divisor) {
  const Array sums = fold_rows(Fold::kSum, x, rows);
  const double* const total = sums.data<double>();
  for_each_row<double>(mean,
                       [&](int64_t row) { return total[row] / static_cast<double>(rows.length); });
  const Array squares = fold_rows(Fold::kSquares, x, rows, mean);
  const double* const square = squares.data<double>();
  dispatch_floating("variance", x.dtype(), [&](auto zero) {
    for_each_row<decltype(zero)>(y, [&](int64_t row) { return square[row] / divisor; });
  });
}

void variance_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& mean,
                       Rows rows, double divisor) {
  dispatch_floating("variance", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = dx.data<T>();
    const T *const gradient = dy.data<T>(), *const in = x.data<T>();
    const double* const center = mean.data<double>();
    for_each_element(rows, [=](int64_t i, int64_t row) {
      const double factor = 2 * static_cast<double>(gradient[row]) / divisor;
      out[i] = static_cast<T>(factor * (static_cast<double>(in[i]) - center[row]));
    });
  });
}

void max(Cpu cpu, Array& y, const Array& x, Rows rows) {
  copy(cpu, y, fold_rows(Fold::kMax, x, rows));
}

void min(Cpu cpu, Array& y, const Array& x, Rows rows) {
  copy(cpu, y, fold_rows(Fold::kMin, x, rows));
}

void extremum_backward(Cpu, Array& dx, const Array& dy, const Array& x, const Array& y, Rows rows) {
  const Array counts = fold_rows(Fold::kMatches, x, rows, y.to(kFloat64));
  const double* const count = counts.data<double>();
  dispatch_floating("max", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = dx.data<T>();
    const T *const gradient = dy.data<T>(), *const in = x.data<T>(), *const value = y.data<T>();
    for_each_element(rows, [=](int64_t i, int64_t row) {
      out[i] = same(in[i], value[row]) ? gradient[row] / static_cast<T>(count[row]) : T(0);
    });
  });
}

void argmax(Cpu, Array& y, const Array& x, Rows rows) {
  if (rows.count() == 0) return;
  const Array largest = fold_rows(Fold::kMax, x, rows);
  int32_t* const out = y.data<int32_t>();
  dispatch_floating("argmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *const in = x.data<T>(), *const value = largest.data<T>();
    const int64_t inner = rows.inner;
    const int64_t grain = std::max<int64_t>(1, kGrain / (rows.length * inner));
    parallel_for(0, rows.outer, grain, [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o) {
        const T* const block = in + o * rows.length * inner;
        if (inner == 1) {
          int64_t i = 0;
          while (!same(block[i], value[o])) ++i;
          out[o] = static_cast<int32_t>(i);
          continue;
        }
        // Backwards, so that the first place is the last one written.
        for (int64_t l = rows.length - 1; l >= 0; --l) {
          for (int64_t i = 0; i < inner; ++i) {
            if (same(block[l * inner + i], value[o * inner + i]))
              out[o * inner + i] = static_cast<int32_t>(l);
          }
        }
      }
    });
  });
}

}  // namespace gs::backend
