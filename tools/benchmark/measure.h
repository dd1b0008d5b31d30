#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "framework/backend/array.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"

namespace gs {

// What the benchmarks of single kernels share. Each sets the least memory traffic it needs, every
// array read or written once, and its floating-point operations; both become rates. The bound of
// the traffic is what memory_benchmark.cpp measures at the same size.

// Numbers in [-1, 1).
inline Array random_array(const Shape& shape, uint64_t seed) {
  const RandomStream stream{seed, 1};
  Array values = Array::empty(shape, kFloat32);
  float* const data = values.data<float>();
  for (int64_t i = 0; i < shape.elements(); ++i)
    data[i] =
        2 * unit_float(stream.words(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)]) - 1;
  return values;
}

// int32 numbers in [0, bound).
inline Array random_indices(int64_t count, int64_t bound, uint64_t seed) {
  const RandomStream stream{seed, 2};
  Array values = Array::empty({count}, kInt32);
  for (int64_t i = 0; i < count; ++i)
    values.data<int32_t>()[i] = static_cast<int32_t>(stream.words(static_cast<uint64_t>(i))[0] %
                                                     static_cast<uint64_t>(bound));
  return values;
}

inline void count_operations(benchmark::State& state, double operations) {
  state.counters["FLOP/s"] = benchmark::Counter(
      operations, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

inline void count_bytes(benchmark::State& state, int64_t bytes) {
  state.SetBytesProcessed(state.iterations() * bytes);
}

// Times the body, which touches that many float32 numbers and computes that much on them.
template <typename Body>
void measure(benchmark::State& state, int64_t floats, double operations, const Body& body) {
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  count_bytes(state, floats * static_cast<int64_t>(sizeof(float)));
  if (operations > 0) count_operations(state, operations);
}

// Limits the threads as long as it lives.
class Threads {
 public:
  explicit Threads(int64_t count) : before_(threads()) { set_threads(static_cast<int>(count)); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Rows of tokens: batches of the toy and of a small Transformer, at the widths of both.
inline void token_rows(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "width"})->UseRealTime();
  for (const int64_t width : {128, 512})
    for (const int64_t rows : {512, 4096}) benchmark->Args({rows, width});
}

}  // namespace gs
