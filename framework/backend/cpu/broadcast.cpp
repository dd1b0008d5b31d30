#include "framework/backend/broadcast.h"

#include <algorithm>
#include <vector>

#include "framework/backend/copy.h"
#include "framework/backend/scale.h"
#include "framework/core/parallel.h"

// Bound by memory: one write of y. Runs of neighbouring repeated dimensions are repeated one after
// another, the innermost first: all but the last are small.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 15;

// y (outer, length, inner) = x (outer, inner) for each of the length.
template <typename T>
void repeat(T* y, const T* x, Rows rows) {
  const int64_t inner = rows.inner, grain = std::max<int64_t>(1, kGrain / inner);
  parallel_for(0, rows.outer * rows.length, grain, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t row = first / rows.length, end = std::min(last, (row + 1) * rows.length);
      const T* const values = x + row * inner;
      if (inner == 1) {
        std::fill(y + first, y + end, *values);
      } else {
        for (int64_t i = first; i < end; ++i) std::copy_n(values, inner, y + i * inner);
      }
      first = end;
    }
  });
}

// The next run of repeated dimensions: the innermost of those that x still lacks.
struct Run {
  Rows rows;
  Shape filled;  // of x with the run repeated, as many dimensions as y
};
Run next_run(const Shape& x, const Shape& y) {
  int last = y.rank() - 1;
  while (x[last] == y[last]) --last;
  int first = last;
  while (first > 0 && (x[first - 1] != y[first - 1] || y[first - 1] == 1)) --first;
  Run run{{}, x};
  for (int d = 0; d < first; ++d) run.rows.outer *= x[d];
  for (int d = first; d <= last; ++d) {
    run.rows.length *= y[d];
    run.filled = run.filled.with(d, y[d]);
  }
  for (int d = last + 1; d < y.rank(); ++d) run.rows.inner *= x[d];
  return run;
}

Array with_rank(const Array& x, int rank) {
  std::vector<int64_t> sizes(static_cast<size_t>(rank - x.rank()), 1);
  sizes.insert(sizes.end(), x.shape().begin(), x.shape().end());
  return x.reshaped(Shape(sizes));
}

}  // namespace

void broadcast(Cpu cpu, Array& y, const Array& x, double factor) {
  if (y.elements() == 0) return;
  Array source = with_rank(x, y.rank());
  if (factor != 1) {
    const Array values = source;
    source = Array::like(values);
    scale(cpu, source, values, factor);
  }
  if (source.shape() == y.shape()) return copy(cpu, y, source);
  while (source.shape() != y.shape()) {
    const Run run = next_run(source.shape(), y.shape());
    Array target = run.filled == y.shape() ? y : Array::empty(run.filled, y.dtype(), y.device());
    dispatch_any("broadcast_to", y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      repeat(target.data<T>(), source.data<T>(), run.rows);
    });
    source = target;
  }
}

}  // namespace gs::backend
