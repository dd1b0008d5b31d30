#include "framework/backend/cross_entropy.h"
#include "framework/backend/layer_norm.h"
#include "framework/backend/linear_cross_entropy.h"
#include "framework/backend/softmax.h"
#include "tools/benchmark/measure.h"

// Kernels that work row by row. FLOP are counted as the formulas need them, an exponential as 20.
namespace gs {
namespace {

struct TokenRows {
  explicit TokenRows(const benchmark::State& state)
      : rows(state.range(0)), width(state.range(1)), elements(rows * width) {}
  double operations(double each) const { return each * static_cast<double>(elements); }

  int64_t rows, width, elements;
  Shape shape{rows, width};
};

using RowKernel = void (*)(Cpu, Array&, const Array&, Rows);
using RowGradient = void (*)(Cpu, Array&, const Array&, const Array&, Rows);

void softmax(benchmark::State& state, RowKernel kernel) {
  const TokenRows r(state);
  const Array x = random_array(r.shape, 1);
  Array y = Array::empty(r.shape, kFloat32);
  measure(state, 2 * r.elements, r.operations(24), [&] {
    kernel(Cpu{}, y, x, {r.rows, r.width, 1});
  });
}

void softmax_outer(benchmark::State& state) {
  const TokenRows r(state);
  const Array x = random_array(r.shape, 1);
  Array y = Array::empty(r.shape, kFloat32);
  measure(state, 2 * r.elements, r.operations(24), [&] {
    backend::softmax(Cpu{}, y, x, {1, r.rows, r.width});
  });
}

void softmax_gradient(benchmark::State& state, RowGradient kernel, double each) {
  const TokenRows r(state);
  const Array y = random_array(r.shape, 1), dy = random_array(r.shape, 2);
  Array dx = Array::empty(r.shape, kFloat32);
  measure(state, 3 * r.elements, r.operations(each), [&] {
    kernel(Cpu{}, dx, y, dy, {r.rows, r.width, 1});
  });
}

struct Norm {
  explicit Norm(const TokenRows& r)
      : x(random_array(r.shape, 1)),
        weight(random_array({r.width}, 2)),
        bias(random_array({r.width}, 3)) {}

  Array x, weight, bias;
  Array statistics = Array::empty({x.shape()[0], 2}, kFloat32);
  Array y = Array::empty(x.shape(), kFloat32);
};

void layer_norm(benchmark::State& state) {
  const TokenRows r(state);
  Norm norm(r);
  measure(state, 2 * r.elements, r.operations(8), [&] {
    backend::layer_norm(Cpu{}, norm.y, norm.statistics, norm.x, norm.weight, norm.bias, {});
  });
}

void layer_norm_backward(benchmark::State& state) {
  const TokenRows r(state);
  Norm norm(r);
  backend::layer_norm(Cpu{}, norm.y, norm.statistics, norm.x, norm.weight, norm.bias, {});
  const Array dy = random_array(r.shape, 4);
  backend::NormGradients gradients{Array::empty(r.shape, kFloat32),
                                   Array::empty({r.width}, kFloat32),
                                   Array::empty({r.width}, kFloat32)};
  measure(state, 3 * r.elements, r.operations(14), [&] {
    backend::layer_norm_backward(Cpu{}, gradients, dy, norm.x, norm.statistics, norm.weight, {});
  });
}

void cross_entropy(benchmark::State& state, bool gradient) {
  const TokenRows r(state);
  const Array logits = random_array(r.shape, 1), targets = random_indices(r.rows, r.width, 2);
  Array dlogits = gradient ? Array::empty(r.shape, kFloat32) : Array();
  measure(state, (gradient ? 2 : 1) * r.elements, r.operations(gradient ? 26 : 24), [&] {
    benchmark::DoNotOptimize(
        backend::cross_entropy(Cpu{}, dlogits, logits, targets, {.label_smoothing = 0.1}));
  });
}

// Beside it: the three products alone, at their best (gemm_benchmark.cpp).
void linear_cross_entropy(benchmark::State& state, bool gradient) {
  const int64_t rows = state.range(0), width = state.range(1), classes = state.range(2);
  const Array x = random_array({rows, width}, 1), weight = random_array({classes, width}, 2);
  const Array bias = state.range(3) != 0 ? random_array({classes}, 3) : Array();
  const Array targets = random_indices(rows, classes, 4);
  backend::LinearCrossEntropyGradients gradients;
  if (gradient) gradients = {Array::like(x), Array::like(weight), Array()};
  if (gradient && bias.defined()) gradients.dbias = Array::like(bias);
  const int64_t floats = (gradient ? 2 : 1) * (x.elements() + weight.elements());
  const double products = gradient ? 3 : 1;
  measure(state, floats, products * 2.0 * static_cast<double>(rows * width * classes), [&] {
    benchmark::DoNotOptimize(backend::linear_cross_entropy(Cpu{}, gradients, x, weight, bias,
                                                           targets, {.label_smoothing = 0.1}));
  });
}

void output_layers(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "width", "classes", "bias"})->UseRealTime();
  for (const int64_t bias : {0, 1})
    benchmark->Args({3500, 128, 6000, bias})->Args({3500, 256, 8000, bias});
}

void vocabulary_rows(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "width"})->Args({512, 6000})->Args({2048, 8000})->UseRealTime();
}

BENCHMARK_CAPTURE(softmax, softmax, backend::softmax)->Apply(token_rows);
BENCHMARK_CAPTURE(softmax, log_softmax, backend::log_softmax)->Apply(token_rows);
BENCHMARK(softmax_outer)->Apply(token_rows);
BENCHMARK_CAPTURE(softmax_gradient, softmax, backend::softmax_backward, 4)->Apply(token_rows);
BENCHMARK_CAPTURE(softmax_gradient, log_softmax, backend::log_softmax_backward, 23)
    ->Apply(token_rows);
BENCHMARK(layer_norm)->Apply(token_rows);
BENCHMARK(layer_norm_backward)->Apply(token_rows);
BENCHMARK_CAPTURE(cross_entropy, loss, false)->Apply(vocabulary_rows);
BENCHMARK_CAPTURE(cross_entropy, gradient, true)->Apply(vocabulary_rows);
BENCHMARK_CAPTURE(linear_cross_entropy, loss, false)->Apply(output_layers);
BENCHMARK_CAPTURE(linear_cross_entropy, gradient, true)->Apply(output_layers);

}  // namespace
}  // namespace gs
