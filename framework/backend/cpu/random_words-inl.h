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
inline constexpr int64_t kRandomWordsSlack = 8 + HWY_MAX_BYTES;

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
  const auto step = hn::Set(d, static_cast<uint64_t>(lanes));
  // Two at a time: the rounds of one wait for its products, those of the other fill the gaps.
  for (int64_t i = 0; i < skipped + count; i += 8 * lanes) {
    auto a0 = block, a1 = hn::ShiftRight<32>(block), a2 = number0, a3 = number1;
    block = hn::Add(block, step);
    auto b0 = block, b1 = hn::ShiftRight<32>(block), b2 = number0, b3 = number1;
    block = hn::Add(block, step);
    uint32_t key0 = static_cast<uint32_t>(stream.seed);
    uint32_t key1 = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto keys0 = hn::Set(d, uint64_t{key0}), keys1 = hn::Set(d, uint64_t{key1});
      const auto a_product0 = multiply(a0, factor0), a_product1 = multiply(a2, factor1);
      const auto b_product0 = multiply(b0, factor0), b_product1 = multiply(b2, factor1);
      a0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a_product1), a1), keys0);
      a2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a_product0), a3), keys1);
      b0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b_product1), b1), keys0);
      b2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b_product0), b3), keys1);
      a1 = a_product1, a3 = a_product0, b1 = b_product1, b3 = b_product0;
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    const auto write = [&](auto c0, auto c1, auto c2, auto c3, uint32_t* words) HWY_ATTR {
      const auto words01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
      const auto words23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
      hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d, words01, words23)), d32, words);
      hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d, words01, words23)), d32,
                 words + 2 * lanes);
    };
    write(a0, a1, a2, a3, buffer + i);
    write(b0, b1, b2, b3, buffer + i + 4 * lanes);
  }
  return buffer + skipped;
}
#endif

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
