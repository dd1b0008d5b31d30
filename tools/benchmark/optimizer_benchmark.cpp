#include "framework/backend/optimizer.h"

#include <memory>
#include <string>

#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "tools/benchmark/measure.h"

// Bound by memory: every array is read and written once. A model's weights do not stay in cache.
namespace gs {
namespace {

void adam(benchmark::State& state) {
  const Shape shape{state.range(0)};
  backend::AdamParameter parameter{.weight = random_array(shape, 1),
                                   .first_moment = Array::zeros(shape, kFloat32),
                                   .second_moment = Array::full(shape, 1, kFloat32),
                                   .gradient = random_array(shape, 2),
                                   .learning_rate = 1e-3,
                                   .decay = 0.01};
  const backend::AdamStep step{.beta1 = 0.9,
                               .beta2 = 0.98,
                               .epsilon = 1e-9,
                               .decoupled = true,
                               .correction1 = 0.5,
                               .correction2 = 0.5};
  measure(state, 7 * shape.elements(), 15.0 * static_cast<double>(shape.elements()), [&] {
    backend::adam(Cpu{}, {&parameter, 1}, step);
  });
}

void sgd(benchmark::State& state, double momentum) {
  const Shape shape{state.range(0)};
  backend::SgdParameter parameter{.weight = random_array(shape, 1),
                                  .velocity = Array(),
                                  .gradient = random_array(shape, 2),
                                  .learning_rate = 1e-3,
                                  .decay = 0};
  if (momentum > 0) parameter.velocity = Array::zeros(shape, kFloat32);
  const backend::SgdStep step{.momentum = momentum, .nesterov = false};
  measure(state, (momentum > 0 ? 5 : 3) * shape.elements(),
          5.0 * static_cast<double>(shape.elements()), [&] {
            backend::sgd(Cpu{}, {&parameter, 1}, step);
          });
}

// The norm of all gradients and a step that clips them, for a Transformer with embeddings of
// `elements` and a hundred smaller parameters.
void clipped_step(benchmark::State& state, bool fused) {
  struct Model : nn::Module {
    std::vector<std::unique_ptr<nn::Parameter>> all;
    void add(const Shape& shape) {
      const auto at = static_cast<uint64_t>(all.size());
      all.push_back(std::make_unique<nn::Parameter>(*this, std::to_string(at),
                                                    Tensor(random_array(shape, at))));
    }
  } model;
  model.add({state.range(0)});
  for (int i = 0; i < 50; ++i) {
    model.add({state.range(1)});
    model.add({256});
  }
  Adam adam(model);
  std::vector<Tensor> gradients;
  for (const auto& parameter : model.all)
    gradients.push_back(Tensor(random_array((*parameter)->shape(), 1)));
  for (auto _ : state) {
    state.PauseTiming();
    for (size_t i = 0; i < gradients.size(); ++i) (*model.all[i])->set_gradient(gradients[i]);
    state.ResumeTiming();
    if (fused) {
      adam.step({.gradient_scale = clip_factor(gradient_norm(model), 1)});
    } else {
      clip_gradient_norm(model, 1);
      adam.step();
    }
  }
  count_bytes(state, (fused ? 32 : 40) * model.parameter_count());
}

void weights(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("elements")->Arg(16'384)->Arg(262'144)->Arg(2'048'000)->UseRealTime();
}

BENCHMARK(adam)->Apply(weights);
BENCHMARK_CAPTURE(sgd, plain, 0)->Apply(weights);
BENCHMARK_CAPTURE(sgd, momentum, 0.9)->Apply(weights);

void models(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"embeddings", "matrices"})->UseRealTime();
  benchmark->Args({768'000, 26'000})->Args({2'048'000, 110'000});
}

BENCHMARK_CAPTURE(clipped_step, in_passes, false)->Apply(models);
BENCHMARK_CAPTURE(clipped_step, fused, true)->Apply(models);

}  // namespace
}  // namespace gs
