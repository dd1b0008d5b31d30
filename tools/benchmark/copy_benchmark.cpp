#include "framework/backend/copy.h"

#include <vector>

#include "framework/backend/permute.h"
#include "framework/ops/join.h"
#include "tools/benchmark/measure.h"

// Bound by memory: one read, one write.
namespace gs {
namespace {

using CopyKernel = void (*)(Cpu, Array&, const Array&);

void copy(benchmark::State& state, CopyKernel kernel, int64_t floats) {
  const Array x = random_array({state.range(0), state.range(1)}, 1);
  Array y = Array::zeros(x.shape(), kFloat32);
  measure(state, floats * x.elements(), 0, [&] { kernel(Cpu{}, y, x); });
}

void fill(benchmark::State& state) {
  Array y = Array::empty({state.range(0), state.range(1)}, kFloat32);
  measure(state, y.elements(), 0, [&] { backend::fill(Cpu{}, y, 0); });
}

// (B, T, H, D) to (B, H, T, D), as heads are split, and whole matrices turned.
void permute(benchmark::State& state, bool heads) {
  const int64_t rows = state.range(0), width = state.range(1);
  const Shape shape = heads ? Shape{rows / 32, 32, 8, width / 8} : Shape{rows, width};
  const std::vector<int> order = heads ? std::vector{0, 2, 1, 3} : std::vector{1, 0};
  std::vector<int64_t> sizes;
  for (const int d : order) sizes.push_back(shape[d]);
  const Array x = random_array(shape, 1);
  Array y = Array::empty(Shape(sizes), kFloat32);
  measure(state, 2 * x.elements(), 0, [&] { backend::permute(Cpu{}, y, x, order); });
}

// Three equal parts of each row, forward and backward, as one product for q, k and v leaves them.
void split_and_join(benchmark::State& state) {
  Tensor x(random_array({state.range(0), 3 * state.range(1)}, 1));
  x.set_needs_grad();
  const Tensor upstream(random_array(x.shape(), 2));
  measure(state, 8 * x.elements(), 0, [&] {
    concat(split(x, 3, 1), 1).backward(upstream);
    x.clear_gradient();
  });
}

BENCHMARK_CAPTURE(copy, copy, backend::copy, 2)->Apply(token_rows);
BENCHMARK_CAPTURE(copy, accumulate, backend::accumulate, 3)->Apply(token_rows);
BENCHMARK(fill)->Apply(token_rows);
BENCHMARK_CAPTURE(permute, heads, true)->Apply(token_rows);
BENCHMARK_CAPTURE(permute, matrix, false)->Apply(token_rows);
BENCHMARK(split_and_join)->Apply(token_rows);

}  // namespace
}  // namespace gs
