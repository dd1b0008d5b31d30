#include "framework/ops/attention.h"

#include "tools/benchmark/measure.h"

namespace gs {
namespace {

Tensor random_values(const Shape& shape, uint64_t seed) {
  return Tensor(random_array(shape, seed));
}

// Batch, queries, keys, heads, head width, dropout in percent, whether causal.
struct Case {
  explicit Case(const benchmark::State& state)
      : batch(state.range(0)),
        queries(state.range(1)),
        keys(state.range(2)),
        width(state.range(4)) {
    options.heads = state.range(3);
    options.causal = state.range(6) != 0;
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

// Least traffic: query, key, value and output once; forward and backward three times that.
int64_t floats(const Case& c) {
  return c.batch * (c.queries + c.keys) * 2 * c.options.heads * c.width;
}

void attention_forward(benchmark::State& state) {
  const Case c(state);
  for (auto _ : state)
    benchmark::DoNotOptimize(scaled_dot_product_attention(c.query, c.key, c.value, c.options));
  count_bytes(state, 4 * floats(c));
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
  count_bytes(state, 12 * floats(c));
  count_operations(state, 3 * c.operations());
}

// A toy step, a translation model's, training steps of about 4096 tokens by their length, and one
// step of a search over 100 hypotheses.
void lengths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "queries", "keys", "heads", "width", "dropout", "causal"});
  benchmark->UseRealTime();
  benchmark->Args({64, 10, 10, 4, 16, 0, 0})->Args({100, 1, 100, 4, 16, 0, 0});
  for (const int64_t causal : {0, 1}) benchmark->Args({240, 17, 17, 4, 32, 0, causal});
  for (const int64_t length : {14, 32, 64, 128})
    for (const int64_t dropout : {0, 10})
      benchmark->Args({4096 / length, length, length, 8, 32, dropout, 0});
  benchmark->Args({64, 64, 64, 8, 64, 0, 0});
}

BENCHMARK(attention_forward)->Apply(lengths);
BENCHMARK(attention_forward_and_backward)->Apply(lengths);

}  // namespace
}  // namespace gs
