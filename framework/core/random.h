#pragma once

#include <array>
#include <cstdint>

namespace gs {

// Philox4x32-10: four random words for one counter and key, no state.
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// One draw: a stream of random words, element by element, that any device and any number of
// threads reads alike. Drawn from a Generator.
struct RandomStream {
  uint64_t seed = 0;
  uint64_t number = 0;
  // Where defined, in the memory of the device that reads the stream: is added to the number, so
  // that recorded work reads another stream each time it is replayed. See RelativeStreams.
  const uint64_t* base = nullptr;

  // Four words for the elements 4 * block to 4 * block + 3.
  constexpr std::array<uint32_t, 4> words(uint64_t block) const {
    const uint64_t place = base == nullptr ? number : number + *base;
    return philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                   static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32)},
                  seed);
  }
};

// A uniform number in [0, 1) with 24 random bits.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

// The state of a generator, all that a checkpoint must keep: streams are counted from the seed.
struct RandomState {
  uint64_t seed = 0;
  uint64_t next_stream = 0;

  bool operator==(const RandomState&) const = default;
};

// Hands out the streams of one seed, in order.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}

  RandomStream next();
  RandomState state() const { return state_; }
  void restore(RandomState state) { state_ = state; }

 private:
  RandomState state_;
};

// While one lives in a thread, the streams of `generator` count from *base, which stands in the
// memory of a device; other generators refuse to draw. For device work that is recorded once and
// replayed: what a replay draws are the streams of a first run if *base is the number of its first
// one. In the end the generator is as before.
class RelativeStreams {
 public:
  RelativeStreams(Generator& generator, const uint64_t* base);
  ~RelativeStreams();
  RelativeStreams(const RelativeStreams&) = delete;
  RelativeStreams& operator=(const RelativeStreams&) = delete;

  uint64_t drawn() const { return generator_.state().next_stream - before_.next_stream; }

 private:
  friend class Generator;

  Generator& generator_;
  const RandomState before_;
  const uint64_t* const base_;
};

// The generator behind randn, dropout and the initialisers where none is given.
Generator& default_generator();

// Restarts the default generator.
void set_seed(uint64_t seed);

}  // namespace gs
