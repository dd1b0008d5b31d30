#include "framework/backend/optimizer.h"

#include "tools/benchmark/measure.h"

// Bound by memory: every array is read and written once. A model's weights do not stay in cache.
namespace gs {
namespace {

void adam(benchmark::State& state) {
  const Shape shape{state.range(0)};
  Array weight = random_array(shape, 1), first = Array::zeros(shape, kFloat32),
        second = Array::full(shape, 1, kFloat32);
  const Array gradient = random_array(shape, 2);
  const backend::AdamStep step{.learning_rate = 1e-3,
                               .beta1 = 0.9,
                               .beta2 = 0.98,
                               .epsilon = 1e-9,
                               .decay = 0.01,
                               .decoupled = true,
                               .correction1 = 0.5,
                               .correction2 = 0.5};
  measure(state, 7 * shape.elements(), 14.0 * static_cast<double>(shape.elements()),
          [&] { backend::adam(Cpu{}, weight, first, second, gradient, step); });
}

void sgd(benchmark::State& state, double momentum) {
  const Shape shape{state.range(0)};
  Array weight = random_array(shape, 1), velocity;
  if (momentum > 0) velocity = Array::zeros(shape, kFloat32);
  const Array gradient = random_array(shape, 2);
  const backend::SgdStep step{
      .learning_rate = 1e-3, .momentum = momentum, .decay = 0, .nesterov = false};
  measure(state, (momentum > 0 ? 5 : 3) * shape.elements(),
          4.0 * static_cast<double>(shape.elements()),
          [&] { backend::sgd(Cpu{}, weight, velocity, gradient, step); });
}

void weights(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("elements")->Arg(128 * 128)->Arg(256 * 1024)->Arg(8000 * 256)->UseRealTime();
}

BENCHMARK(adam)->Apply(weights);
BENCHMARK_CAPTURE(sgd, plain, 0)->Apply(weights);
BENCHMARK_CAPTURE(sgd, momentum, 0.9)->Apply(weights);

}  // namespace
}  // namespace gs
