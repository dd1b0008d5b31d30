// Philox in vectors, compiled once for each instruction set: include after highway.h.
#if defined(GS_BACKEND_CPU_RANDOM_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_RANDOM_WORDS_INL_H_
#undef GS_BACKEND_CPU_RANDOM_WORDS_INL_H_
#else
#define GS_BACKEND_CPU_RANDOM_WORDS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "framework/core/random.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// How many words more than asked for the buffer of random_words must hold.
inline constexpr int64_t kRandomWordsSlack = 8 + HWY_MAX_BYTES / 2;

// The words of the elements first to first + count - 1, as stream.words(i / 4)[i % 4] gives them:
// written to `buffer`, which holds count + kRandomWordsSlack words. Returns where the first one is.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE const uint32_t* random_words(const RandomStream& stream, int64_t first, int64_t count,
                                        uint32_t* HWY_RESTRICT buffer) {
  const int64_t skipped = first % 4;
  for (int64_t i = 0; i < skipped + count; i += 4) {
    const std::array<uint32_t, 4> words = stream.words(static_cast<uint64_t>((first + i) / 4));
    std::copy(words.begin(), words.end(), buffer + i);
  }
  return buffer + skipped;
}
#else
HWY_INLINE const uint32_t* random_words(const RandomStream& stream, int64_t first, int64_t count,
                                        uint32_t* HWY_RESTRICT buffer) {
  namespace hn = hwy::HWY_NAMESPACE;
  // A lane of 64 bits holds one word of a counter below; what is above never reaches a result.
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto multiply = [&](auto a, auto b) HWY_ATTR {
    return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b));
  };
  // Even lanes count the first half of the blocks, odd lanes the second half: interleaving the
  // results within 128 bits then puts them in order.
  HWY_ALIGN uint64_t start[HWY_MAX_BYTES / 8];
  for (int64_t i = 0; i < lanes; ++i)
    start[i] = static_cast<uint64_t>(first / 4 + i / 2 + (i % 2) * (lanes / 2));
  auto block = hn::Load(d, start);
  const auto factor0 = hn::Set(d, 0xD2511F53), factor1 = hn::Set(d, 0xCD9E8D57);
  const auto number0 = hn::Set(d, stream.number), number1 = hn::Set(d, stream.number >> 32);
  const auto low = hn::Set(d, 0xFFFFFFFF);
  const int64_t skipped = first % 4;
  for (int64_t i = 0; i < skipped + count; i += 4 * lanes) {
    auto c0 = block, c1 = hn::ShiftRight<32>(block), c2 = number0, c3 = number1;
    uint32_t key0 = static_cast<uint32_t>(stream.seed);
    uint32_t key1 = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto product0 = multiply(c0, factor0), product1 = multiply(c2, factor1);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), hn::Set(d, uint64_t{key0}));
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), hn::Set(d, uint64_t{key1}));
      c1 = product1;
      c3 = product0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    const auto words01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const auto words23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d, words01, words23)), d32, buffer + i);
    hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d, words01, words23)), d32,
               buffer + i + 2 * lanes);
    block = hn::Add(block, hn::Set(d, static_cast<uint64_t>(lanes)));
  }
  return buffer + skipped;
}
#endif

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
