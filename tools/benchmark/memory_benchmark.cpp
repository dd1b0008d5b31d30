#include <vector>

#include "tools/benchmark/measure.h"

// What memory gives at the sizes that kernels work on: the bound for all that compute little.
namespace gs {
namespace {

// McCalpin's STREAM triad; two reads and a write.
[[gnu::target_clones("avx512f", "avx2", "default")]] void triad_range(float* a, const float* b,
                                                                      const float* c,
                                                                      int64_t count) {
  for (int64_t i = 0; i < count; ++i) a[i] = b[i] + 0.5f * c[i];
}

void memory_triad(benchmark::State& state) {
  const int64_t kilobytes = state.range(0), count = kilobytes * 1024 / 12;
  const Threads limit(state.range(1));
  Array a = Array::zeros({count}, kFloat32);
  const Array b = random_array({count}, 1), c = random_array({count}, 2);
  measure(state, 3 * count, 2.0 * static_cast<double>(count), [&] {
    parallel_for(0, count, 1 << 13, [&](int64_t first, int64_t last) {
      triad_range(a.data<float>() + first, b.data<float>() + first, c.data<float>() + first,
                  last - first);
    });
  });
}

// Three arrays of 4096 x 128, 4096 x 512 and 4096 x 2048 among them.
BENCHMARK(memory_triad)
    ->ArgNames({"KiB", "threads"})
    ->ArgsProduct({{192, 768, 6144, 24576, 98304, 393216}, {1, 2}})
    ->UseRealTime();

}  // namespace
}  // namespace gs
