#pragma once

#include <cmath>

#include "framework/core/random.h"

namespace gs::backend {

// Which elements dropout keeps, without storing them: element i is kept where its random number
// unit_float(stream.words(i / 4)[i % 4]) is at least the probability, in steps of 2^-24, and
// multiplied by 1 / (1 - probability). The same on every device and for any order of elements.
struct DropoutMask {
  RandomStream stream;
  uint32_t threshold = 0;  // kept where the upper 24 bits of the word reach it
  double scale = 1;        // of what is kept

  // `probability` in [0, 1]; at 1 nothing is kept.
  static DropoutMask of(double probability, RandomStream stream) {
    return {stream, static_cast<uint32_t>(std::ceil(probability * 0x1p24)),
            probability < 1 ? 1 / (1 - probability) : 0};
  }
  constexpr bool keeps_word(uint32_t word) const { return (word >> 8) >= threshold; }
  constexpr bool keeps(uint64_t element) const {
    return keeps_word(stream.words(element / 4)[element % 4]);
  }
};

}  // namespace gs::backend
