#include "framework/backend/scale.h"

#include "framework/core/parallel.h"

// Bound by memory: one read, one write.
namespace gs::backend {

void scale(Cpu, Array& y, const Array& x, double factor) {
  constexpr int64_t kGrain = 1 << 15;
  dispatch_floating("scale", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T* const in = x.data<T>();
    const T by = static_cast<T>(factor);
    parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) out[i] = in[i] * by;
    });
  });
}

void scale_by(Cpu cpu, Array& y, const Array& x, const Array& factor) {
  const double by = factor.values<double>()[0];
  if (by == 1 && y.shares_memory(x)) return;
  scale(cpu, y, x, by);
}

void average(Cpu cpu, Array& y, const Array& x, const Array& count) {
  const double by = count.data<double>()[0];
  scale(cpu, y, x, by == 0 ? 0 : 1 / by);
}

}  // namespace gs::backend
