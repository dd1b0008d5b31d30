#include "framework/backend/copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "framework/backend/convert.h"
#include "framework/core/parallel.h"

// Bound by memory: each reads and writes every element once.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 15;

}  // namespace

void fill(Cpu, Array& y, double value) {
  dispatch_stored(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T element = convert<T>(value);
    parallel_for(0, y.elements(), kGrain,
                 [&](int64_t first, int64_t last) { std::fill(out + first, out + last, element); });
  });
}

void copy(Cpu, Array& y, const Array& x) {
  char* const out = static_cast<char*>(y.raw());
  const char* const in = static_cast<const char*>(x.raw());
  parallel_for(0, y.bytes(), 4 * kGrain, [&](int64_t first, int64_t last) {
    std::memcpy(out + first, in + first, static_cast<size_t>(last - first));
  });
}

void cast(Cpu cpu, Array& y, const Array& x) {
  if (y.dtype() == x.dtype()) return copy(cpu, y, x);
  dispatch_stored(y.dtype(), [&](auto y_zero) {
    dispatch_stored(x.dtype(), [&](auto x_zero) {
      using To = decltype(y_zero);
      using From = decltype(x_zero);
      To* const out = y.data<To>();
      const From* const in = x.data<From>();
      parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) out[i] = convert<To>(in[i]);
      });
    });
  });
}

void copy_blocks(Cpu, Array& y, const Array& x, Blocks blocks) {
  const int64_t size = size_of(y.dtype());
  char* const out = static_cast<char*>(y.raw());
  const char* const in = static_cast<const char*>(x.raw());
  if (blocks.length == 0) return;
  parallel_for(0, blocks.rows, std::max<int64_t>(1, kGrain / blocks.length),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first; row < last; ++row) {
                   std::memcpy(out + (blocks.y_start + row * blocks.y_stride) * size,
                               in + (blocks.x_start + row * blocks.x_stride) * size,
                               static_cast<size_t>(blocks.length * size));
                 }
               });
}

void accumulate(Cpu, Array& y, const Array& x) {
  dispatch_floating("accumulate", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T* const in = x.data<T>();
    parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) out[i] += in[i];
    });
  });
}

void accumulate_blocks(Cpu, Array& y, const Array& x, Blocks blocks) {
  if (blocks.length == 0) return;
  dispatch_floating("accumulate", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>() + blocks.y_start;
    const T* const in = x.data<T>() + blocks.x_start;
    const int64_t grain = std::max<int64_t>(1, kGrain / blocks.length);
    parallel_for(0, blocks.rows, grain, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        T* const y_row = out + row * blocks.y_stride;
        const T* const x_row = in + row * blocks.x_stride;
        for (int64_t i = 0; i < blocks.length; ++i) y_row[i] += x_row[i];
      }
    });
  });
}

int64_t first_non_finite(Cpu, const Array& x) {
  if (!is_floating(x.dtype())) return -1;
  return dispatch_floating("first_non_finite", x.dtype(), [&](auto zero) -> int64_t {
    using T = decltype(zero);
    const T* const first = x.data<T>();
    const T* const last = first + x.elements();
    const T* const found = std::find_if(first, last, [](T value) { return !std::isfinite(value); });
    return found == last ? -1 : found - first;
  });
}

}  // namespace gs::backend
