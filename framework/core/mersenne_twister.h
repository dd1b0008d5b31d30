#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs {

// MT19937, for numbers that are equal to those of np.random.seed(seed) in NumPy, in the same order.
// Everything else draws from random.h, which keeps no state.
// Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998.
class MersenneTwister {
 public:
  explicit MersenneTwister(uint32_t seed);

  // 32 random bits.
  uint32_t next();
  // Uniform in [0, 1) with 53 random bits: np.random.random_sample().
  double uniform();
  // Of mean 0 and variance 1: np.random.randn() and np.random.standard_normal(), by Marsaglia's
  // polar method, which makes two at a time.
  double normal();

 private:
  static constexpr size_t kWords = 624;
  void twist();

  std::array<uint32_t, kWords> words_{};
  size_t position_ = kWords;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

}  // namespace gs
