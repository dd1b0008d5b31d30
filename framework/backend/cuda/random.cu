#include "framework/backend/random.h"

#include <cmath>
#include <numbers>

#include "framework/backend/cuda/map.cuh"

// Bound by memory, normal numbers by their arithmetic in double precision.
namespace gs::backend {
namespace {

using Words = std::array<uint32_t, 4>;

// Four elements a thread: those of one block of words.
template <typename T, typename Distribution>
__global__ void random_kernel(T* y, int64_t count, RandomStream stream, Distribution distribution) {
  for (int64_t block = first_element(); 4 * block < count; block += element_step()) {
    const Words words = stream.words(static_cast<uint64_t>(block));
    Pack<T, 4> pack;
    distribution(pack, words);
    const int64_t first = 4 * block;
    if (first + 4 <= count) {
      store_pack(y + first, pack);
    } else {
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (first + i < count) y[first + i] = pack.values[i];
      }
    }
  }
}

template <typename T, typename Distribution>
void draw(const char* operation, Cuda device, Array& y, RandomStream stream,
          Distribution distribution) {
  if (y.elements() == 0) return;
  launch(operation, device, grid_of(y.elements(), 4), random_kernel<T, Distribution>, y.data<T>(),
         y.elements(), stream, distribution);
}

// Rounded as on the CPU, bit for bit: products and sums must not be fused.
template <typename T>
struct Uniform {
  double low, span;
  T largest;

  __device__ void operator()(Pack<T, 4>& pack, const Words& words) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const double unit = static_cast<double>(unit_float(words[static_cast<size_t>(i)]));
      const T value = static_cast<T>(__dadd_rn(low, __dmul_rn(span, unit)));
      pack.values[i] = largest < value ? largest : value;
    }
  }
};

// Box and Muller, "A note on the generation of random normal deviates", 1958: two words make two
// numbers. In double precision for both types, so that they agree.
template <typename T>
struct Normal {
  double mean, deviation;

  __device__ void operator()(Pack<T, 4>& pack, const Words& words) const {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const size_t pair = static_cast<size_t>(i);
      const double unit = (static_cast<double>(words[pair]) + 1) * 0x1p-32;  // never 0
      const double angle = 2 * std::numbers::pi * static_cast<double>(words[pair + 1]) * 0x1p-32;
      const double radius = deviation * std::sqrt(-2 * std::log(unit));
      pack.values[i] = static_cast<T>(mean + radius * std::cos(angle));
      pack.values[i + 1] = static_cast<T>(mean + radius * std::sin(angle));
    }
  }
};

struct Integers {
  int64_t low;
  uint64_t range;

  __device__ void operator()(Pack<int32_t, 4>& pack, const Words& words) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint64_t offset = words[static_cast<size_t>(i)] * range >> 32;
      pack.values[i] = static_cast<int32_t>(low + static_cast<int64_t>(offset));
    }
  }
};

}  // namespace

void random_uniform(Cuda device, Array& y, RandomStream stream, double low, double high) {
  dispatch_floating("random_uniform", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    draw<T>("random_uniform", device, y, stream, Uniform<T>{low, high - low, below<T>(high)});
  });
}

void random_normal(Cuda device, Array& y, RandomStream stream, double mean, double deviation) {
  dispatch_floating("random_normal", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    draw<T>("random_normal", device, y, stream, Normal<T>{mean, deviation});
  });
}

void random_integers(Cuda device, Array& y, RandomStream stream, int64_t low, int64_t high) {
  const uint64_t range = static_cast<uint64_t>(high - low);
  draw<int32_t>("random_integers", device, y, stream, Integers{low, range});
}

}  // namespace gs::backend
