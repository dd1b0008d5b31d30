#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gs {

// splitmix64: one step of the state, one random word. Fills the states of other generators.
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
constexpr uint64_t splitmix64(uint64_t& state) {
  state += 0x9E3779B97F4A7C15;
  uint64_t word = state;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

// xoshiro256**: sequential random numbers for data (sentences, order), the same with every
// compiler and library, which <random>'s distributions and std::shuffle do not promise.
// Blackman and Vigna, "Scrambled linear pseudorandom number generators", TOMS 2021.
class Xoshiro {
 public:
  using State = std::array<uint64_t, 4>;

  explicit constexpr Xoshiro(uint64_t seed) {
    for (uint64_t& word : state_) word = splitmix64(seed);
  }
  explicit constexpr Xoshiro(const State& state) : state_(state) {}

  constexpr State state() const { return state_; }

  constexpr uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // A uniform integer in 0 .. bound - 1, without bias; bound >= 1.
  // Lemire, "Fast random integer generation in an interval", TOMACS 2019.
  constexpr uint64_t below(uint64_t bound) {
    using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;
      while (static_cast<uint64_t>(product) < threshold)
        product = static_cast<Wide>(next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

  // A uniform number in [0, 1) with 53 random bits.
  constexpr double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // True with the given probability.
  constexpr bool chance(double probability) { return unit() < probability; }

  // Puts the values in random order (Fisher and Yates).
  template <typename T>
  constexpr void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  State state_{};
};

}  // namespace gs
