#include "framework/core/mersenne_twister.h"

#include <cmath>

namespace gs {

MersenneTwister::MersenneTwister(uint32_t seed) {
  words_[0] = seed;
  for (size_t i = 1; i < kWords; ++i) {
    const uint32_t before = words_[i - 1];
    words_[i] = 1812433253u * (before ^ (before >> 30)) + static_cast<uint32_t>(i);
  }
}

void MersenneTwister::twist() {
  constexpr size_t kShift = 397;
  for (size_t i = 0; i < kWords; ++i) {
    const uint32_t mixed = (words_[i] & 0x80000000u) | (words_[(i + 1) % kWords] & 0x7fffffffu);
    words_[i] = words_[(i + kShift) % kWords] ^ (mixed >> 1) ^ (mixed % 2 == 1 ? 0x9908b0dfu : 0);
  }
  position_ = 0;
}

uint32_t MersenneTwister::next() {
  if (position_ == kWords) twist();
  uint32_t word = words_[position_++];
  word ^= word >> 11;
  word ^= (word << 7) & 0x9d2c5680u;
  word ^= (word << 15) & 0xefc60000u;
  return word ^ (word >> 18);
}

double MersenneTwister::uniform() {
  const uint32_t high = next() >> 5, low = next() >> 6;  // 27 and 26 bits
  return (high * 0x1p26 + low) * 0x1p-53;
}

double MersenneTwister::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  double x, y, square;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  spare_normal_ = factor * x;
  has_spare_normal_ = true;
  return factor * y;
}

}  // namespace gs
