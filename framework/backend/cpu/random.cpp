#include "framework/backend/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/core/parallel.h"

// Bound by arithmetic: ten rounds of two products for four words, and logarithm, sine and cosine
// for normal numbers.
namespace gs::backend {
namespace {

// Calls write(first, words, count) for each block of up to four elements.
template <typename Write>
void for_each_block(int64_t elements, RandomStream stream, int64_t grain, Write write) {
  parallel_for(0, (elements + 3) / 4, grain, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      write(4 * block, stream.words(static_cast<uint64_t>(block)),
            std::min<int64_t>(4, elements - 4 * block));
    }
  });
}

}  // namespace

void random_uniform(Cpu, Array& y, RandomStream stream, double low, double high) {
  dispatch_floating("random_uniform", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T largest = below<T>(high);
    for_each_block(y.elements(), stream, 1 << 10, [&](int64_t first, auto words, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        const double unit = static_cast<double>(unit_float(words[static_cast<size_t>(i)]));
        out[first + i] = std::min(static_cast<T>(low + (high - low) * unit), largest);
      }
    });
  });
}

// Box and Muller, "A note on the generation of random normal deviates", 1958: two words make two
// numbers. In double precision for both types, so that they agree.
void random_normal(Cpu, Array& y, RandomStream stream, double mean, double deviation) {
  dispatch_floating("random_normal", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    for_each_block(y.elements(), stream, 1 << 8, [&](int64_t first, auto words, int64_t count) {
      for (int64_t i = 0; i < count; i += 2) {
        const size_t pair = static_cast<size_t>(i);
        const double unit = (static_cast<double>(words[pair]) + 1) * 0x1p-32;  // never 0
        const double angle = 2 * std::numbers::pi * static_cast<double>(words[pair + 1]) * 0x1p-32;
        const double radius = deviation * std::sqrt(-2 * std::log(unit));
        out[first + i] = static_cast<T>(mean + radius * std::cos(angle));
        if (i + 1 < count) out[first + i + 1] = static_cast<T>(mean + radius * std::sin(angle));
      }
    });
  });
}

void random_integers(Cpu, Array& y, RandomStream stream, int64_t low, int64_t high) {
  int32_t* const out = y.data<int32_t>();
  const uint64_t range = static_cast<uint64_t>(high - low);
  for_each_block(y.elements(), stream, 1 << 10, [&](int64_t first, auto words, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t offset = words[static_cast<size_t>(i)] * range >> 32;
      out[first + i] = static_cast<int32_t>(low + static_cast<int64_t>(offset));
    }
  });
}

}  // namespace gs::backend
