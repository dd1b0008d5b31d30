#include "framework/backend/reduce.h"

#include "framework/backend/optimizer.h"
#include "tools/benchmark/measure.h"

// Bound by memory: one read. "along" sums each row, "across" sums the rows up, as gradients of
// biases do.
namespace gs {
namespace {

struct Reduced {
  Reduced(const benchmark::State& state, bool along)
      : x(random_array({state.range(0), state.range(1)}, 1)),
        rows(along ? Rows{state.range(0), state.range(1), 1}
                   : Rows{1, state.range(0), state.range(1)}) {}
  double operations(double each) const { return each * static_cast<double>(x.elements()); }

  Array x;
  Rows rows;
  Array y = Array::empty({rows.count()}, kFloat32);
};

void sum(benchmark::State& state, bool along) {
  Reduced r(state, along);
  measure(state, r.x.elements(), r.operations(1), [&] { backend::sum(Cpu{}, r.y, r.x, r.rows); });
}

void max(benchmark::State& state, bool along) {
  Reduced r(state, along);
  measure(state, r.x.elements(), r.operations(1), [&] { backend::max(Cpu{}, r.y, r.x, r.rows); });
}

void argmax(benchmark::State& state) {
  Reduced r(state, true);
  Array places = Array::empty(r.y.shape(), kInt32);
  measure(state, r.x.elements(), r.operations(1),
          [&] { backend::argmax(Cpu{}, places, r.x, r.rows); });
}

void variance(benchmark::State& state) {
  Reduced r(state, true);
  Array mean = Array::empty(r.y.shape(), kFloat64);
  measure(state, r.x.elements(), r.operations(4),
          [&] { backend::variance(Cpu{}, r.y, mean, r.x, r.rows, 1); });
}

void logsumexp(benchmark::State& state) {
  Reduced r(state, true);
  measure(state, r.x.elements(), r.operations(23),
          [&] { backend::logsumexp(Cpu{}, r.y, r.x, r.rows); });
}

void logsumexp_backward(benchmark::State& state) {
  Reduced r(state, true);
  backend::logsumexp(Cpu{}, r.y, r.x, r.rows);
  const Array dy = random_array(r.y.shape(), 2);
  Array dx = Array::empty(r.x.shape(), kFloat32);
  measure(state, 2 * r.x.elements(), r.operations(22),
          [&] { backend::logsumexp_backward(Cpu{}, dx, dy, r.x, r.y, r.rows); });
}

void sum_of_squares(benchmark::State& state) {
  Reduced r(state, true);
  measure(state, r.x.elements(), r.operations(2), [&] {
    benchmark::DoNotOptimize(backend::sum_of_squares(Cpu{}, {&r.x, 1}));
  });
}

BENCHMARK_CAPTURE(sum, along, true)->Apply(token_rows);
BENCHMARK_CAPTURE(sum, across, false)->Apply(token_rows);
BENCHMARK_CAPTURE(max, along, true)->Apply(token_rows);
BENCHMARK_CAPTURE(max, across, false)->Apply(token_rows);
BENCHMARK(argmax)->Apply(token_rows);
BENCHMARK(variance)->Apply(token_rows);
BENCHMARK(logsumexp)->Apply(token_rows);
BENCHMARK(logsumexp_backward)->Apply(token_rows);
BENCHMARK(sum_of_squares)->Apply(token_rows);

}  // namespace
}  // namespace gs
