#include "framework/backend/dropout.h"
#include "framework/backend/embedding.h"
#include "framework/backend/random.h"
#include "tools/benchmark/measure.h"

// Embedding is bound by memory, dropout and random numbers by the arithmetic of Philox: some 80
// integer operations for four numbers.
namespace gs {
namespace {

constexpr int64_t kVocabulary = 8000;

void embedding(benchmark::State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  const Array weight = random_array({kVocabulary, width}, 1);
  const Array indices = random_indices(rows, kVocabulary, 2);
  Array y = Array::empty({rows, width}, kFloat32);
  measure(state, 2 * rows * width, 0, [&] { backend::embedding(Cpu{}, y, weight, indices); });
}

void embedding_backward(benchmark::State& state) {
  const int64_t rows = state.range(0), width = state.range(1);
  const Array dy = random_array({rows, width}, 1);
  const Array indices = random_indices(rows, kVocabulary, 2);
  Array dweight = Array::empty({kVocabulary, width}, kFloat32);
  measure(state, (rows + kVocabulary) * width, static_cast<double>(rows * width),
          [&] { backend::embedding_backward(Cpu{}, dweight, dy, indices, std::nullopt); });
}

void dropout(benchmark::State& state) {
  const Shape shape{state.range(0), state.range(1)};
  const Array x = random_array(shape, 1);
  Array y = Array::empty(shape, kFloat32);
  const auto mask = backend::DropoutMask::of(0.1, {1, 2});
  measure(state, 2 * x.elements(), static_cast<double>(x.elements()),
          [&] { backend::dropout(Cpu{}, y, x, mask); });
}

void random_numbers(benchmark::State& state,
                    void (*kernel)(Cpu, Array&, RandomStream, double, double)) {
  Array y = Array::empty({state.range(0), state.range(1)}, kFloat32);
  measure(state, y.elements(), 0, [&] { kernel(Cpu{}, y, {1, 2}, 0, 1); });
}

BENCHMARK(embedding)->Apply(token_rows);
BENCHMARK(embedding_backward)->Apply(token_rows);
BENCHMARK(dropout)->Apply(token_rows);
BENCHMARK_CAPTURE(random_numbers, uniform, backend::random_uniform)->Apply(token_rows);
BENCHMARK_CAPTURE(random_numbers, normal, backend::random_normal)->Apply(token_rows);

}  // namespace
}  // namespace gs
