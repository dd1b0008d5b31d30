#include <cmath>
#include <vector>

#include "framework/backend/sum_to.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/comparison.h"
#include "framework/ops/unary.h"
#include "framework/ops/where.h"
#include "tools/benchmark/measure.h"

// Operations as users call them, allocation and recording included, at the sizes of a small
// Transformer: 700 tokens, feed-forward width 256, and a tenth and ten times as many.
namespace gs {
namespace {

Tensor numbers(const Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(2 * std::sin(static_cast<float>(i)) + 0.001f);
  return Tensor::of<float>(shape, values);
}

void count_floats(benchmark::State& state, int64_t count) { count_bytes(state, 4 * count); }

void unary(benchmark::State& state, Tensor (*function)(const Tensor&)) {
  const Tensor x = numbers({state.range(0), 256});
  for (auto _ : state) benchmark::DoNotOptimize(function(x));
  count_floats(state, 2 * x.elements());
}

void unary_backward(benchmark::State& state, Tensor (*function)(const Tensor&)) {
  const Tensor x = numbers({state.range(0), 256}).set_needs_grad();
  const Tensor dy = numbers(x.shape());
  for (auto _ : state) {
    state.PauseTiming();
    x.node()->gradient = Array();
    const Tensor y = function(x);
    state.ResumeTiming();
    y.backward(dy);
  }
  count_floats(state, 3 * x.elements());
}

void binary(benchmark::State& state, Tensor (*function)(const Tensor&, const Tensor&),
            const Shape& other) {
  const Tensor x = numbers({state.range(0), 256}), y = numbers(other);
  for (auto _ : state) benchmark::DoNotOptimize(function(x, y));
  count_floats(state, 2 * x.elements() + y.elements());
}

void add_same(benchmark::State& state) { binary(state, add, {state.range(0), 256}); }
void add_row(benchmark::State& state) { binary(state, add, {256}); }
void add_column(benchmark::State& state) { binary(state, add, {state.range(0), 1}); }
void less_same(benchmark::State& state) { binary(state, less, {state.range(0), 256}); }

void multiply_number(benchmark::State& state) {
  const Tensor x = numbers({state.range(0), 256});
  for (auto _ : state) benchmark::DoNotOptimize(x * 0.5);
  count_floats(state, 2 * x.elements());
}

void power_of_two(benchmark::State& state) {
  const Tensor x = numbers({state.range(0), 256});
  for (auto _ : state) benchmark::DoNotOptimize(pow(x, 2));
  count_floats(state, 2 * x.elements());
}

void masked_fill_row(benchmark::State& state) {
  const Tensor x = numbers({state.range(0), 256}), mask = less(numbers({256}), 0);
  for (auto _ : state) benchmark::DoNotOptimize(masked_fill(x, mask, -1));
  count_floats(state, 2 * x.elements());
}

void sum_to(benchmark::State& state, const Shape& shape) {
  const Tensor x = numbers({state.range(0), 256});
  Array y = Array::empty(shape, kFloat32);
  for (auto _ : state) {
    backend::sum_to(Cpu{}, y, x.value());
    benchmark::ClobberMemory();
  }
  count_floats(state, x.elements());
}

void sum_to_row(benchmark::State& state) { sum_to(state, {256}); }
void sum_to_column(benchmark::State& state) { sum_to(state, {state.range(0), 1}); }
void sum_to_scalar(benchmark::State& state) { sum_to(state, {}); }

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1)->Arg(70)->Arg(700)->Arg(7000)->UseRealTime();
}

BENCHMARK(add_same)->Apply(sizes);
BENCHMARK(add_row)->Apply(sizes);
BENCHMARK(add_column)->Apply(sizes);
BENCHMARK(multiply_number)->Apply(sizes);
BENCHMARK(power_of_two)->Apply(sizes);
BENCHMARK(less_same)->Apply(sizes);
BENCHMARK(masked_fill_row)->Apply(sizes);
BENCHMARK(sum_to_row)->Apply(sizes);
BENCHMARK(sum_to_column)->Apply(sizes);
BENCHMARK(sum_to_scalar)->Apply(sizes);
BENCHMARK_CAPTURE(unary, relu, relu)->Apply(sizes);
BENCHMARK_CAPTURE(unary, exp, exp)->Apply(sizes);
BENCHMARK_CAPTURE(unary, log, log)->Apply(sizes);
BENCHMARK_CAPTURE(unary, tanh, tanh)->Apply(sizes);
BENCHMARK_CAPTURE(unary, sigmoid, sigmoid)->Apply(sizes);
BENCHMARK_CAPTURE(unary, gelu, gelu)->Apply(sizes);
BENCHMARK_CAPTURE(unary, gelu_tanh, gelu_tanh)->Apply(sizes);
BENCHMARK_CAPTURE(unary, silu, silu)->Apply(sizes);
BENCHMARK_CAPTURE(unary_backward, relu, relu)->Apply(sizes);
BENCHMARK_CAPTURE(unary_backward, tanh, tanh)->Apply(sizes);
BENCHMARK_CAPTURE(unary_backward, gelu, gelu)->Apply(sizes);
BENCHMARK_CAPTURE(unary_backward, silu, silu)->Apply(sizes);

}  // namespace
}  // namespace gs
