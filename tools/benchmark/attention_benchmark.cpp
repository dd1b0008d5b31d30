#include <benchmark/benchmark.h>

#include "framework/ops/attention.h"

namespace gs {
namespace {

Tensor random_values(const Shape& shape, uint64_t seed) {
  const RandomStream stream{seed, 1};
  Array values = Array::empty(shape, kFloat32);
  float* const data = values.data<float>();
  for (int64_t i = 0; i < shape.elements(); ++i)
    data[i] = 2 * unit_float(stream.words(static_cast<uint64_t>(i))[0]) - 1;
  return Tensor(values);
}

// Batch, queries, keys, heads, head width, dropout in percent.
struct Case {
  explicit Case(const benchmark::State& state)
      : batch(state.range(0)),
        queries(state.range(1)),
        keys(state.range(2)),
        width(state.range(4)) {
    options.heads = state.range(3);
    options.dropout = 0.01 * static_cast<double>(state.range(5));
    options.training = true;
    const int64_t columns = options.heads * width;
    query = random_values({batch, queries, columns}, 1);
    key = random_values({batch, keys, columns}, 2);
    value = random_values({batch, keys, columns}, 3);
  }
  // Of the two products of a forward pass.
  double operations() const {
    return 4.0 * static_cast<double>(batch * options.heads * queries * keys * width);
  }

  int64_t batch, queries, keys, width;
  AttentionOptions options;
  Tensor query, key, value;
};

void count_operations(benchmark::State& state, double operations) {
  state.counters["FLOP/s"] = benchmark::Counter(
      operations, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void attention_forward(benchmark::State& state) {
  const Case c(state);
  for (auto _ : state)
    benchmark::DoNotOptimize(scaled_dot_product_attention(c.query, c.key, c.value, c.options));
  count_operations(state, c.operations());
}

void attention_forward_and_backward(benchmark::State& state) {
  Case c(state);
  for (Tensor* tensor : {&c.query, &c.key, &c.value}) tensor->set_needs_grad();
  const Tensor upstream = random_values(c.query.shape(), 4);
  for (auto _ : state) {
    scaled_dot_product_attention(c.query, c.key, c.value, c.options).output.backward(upstream);
    for (Tensor* tensor : {&c.query, &c.key, &c.value}) tensor->clear_gradient();
  }
  count_operations(state, 3 * c.operations());
}

// A toy step, training steps, and one step of a search over 100 hypotheses.
BENCHMARK(attention_forward)
    ->Args({64, 10, 10, 4, 16, 0})
    ->Args({120, 30, 30, 4, 32, 0})
    ->Args({64, 64, 64, 8, 64, 0})
    ->Args({100, 1, 100, 4, 16, 0})
    ->UseRealTime();
BENCHMARK(attention_forward_and_backward)
    ->Args({64, 10, 10, 4, 16, 0})
    ->Args({64, 10, 10, 4, 16, 10})
    ->Args({120, 30, 30, 4, 32, 0})
    ->Args({64, 64, 64, 8, 64, 0})
    ->Args({64, 64, 64, 8, 64, 10})
    ->UseRealTime();

}  // namespace
}  // namespace gs
