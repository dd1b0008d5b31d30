#include <benchmark/benchmark.h>

#include <vector>

#include "framework/core/parallel.h"

namespace gs {
namespace {

constexpr int64_t grain = 16384;

// What a kernel pays beyond its arithmetic: an empty body, split over all threads or, below the
// grain, called directly.
void parallel_for_overhead(benchmark::State& state) {
  const int64_t size = state.range(0);
  for (auto _ : state) {
    parallel_for(0, size, grain, [](int64_t first, int64_t last) {
      benchmark::DoNotOptimize(first);
      benchmark::DoNotOptimize(last);
    });
  }
}
BENCHMARK(parallel_for_overhead)->Arg(grain)->Arg(64 * grain)->UseRealTime();

// A sum of two arrays: bound by memory where it leaves the caches.
void parallel_for_add(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  const std::vector<float> a(size, 1), b(size, 2);
  std::vector<float> c(size);
  for (auto _ : state) {
    parallel_for(0, state.range(0), grain, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
        c[i] = a[i] + b[i];
    });
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 3 *
                          static_cast<int64_t>(sizeof(float)));
}
BENCHMARK(parallel_for_add)->RangeMultiplier(16)->Range(1 << 10, 1 << 22)->UseRealTime();

}  // namespace
}  // namespace gs
