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
// Blocks of four words, side by side: a lane of 64 bits holds one word of a counter below; what is
// above never reaches a result.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D> >
struct PhiloxBlocks {
  HWY_INLINE void round(D d, V keys0, V keys1) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<uint32_t, D> d32;
    const V product0 = hn::MulEven(hn::BitCast(d32, c0), hn::BitCast(d32, hn::Set(d, 0xD2511F53)));
    const V product1 = hn::MulEven(hn::BitCast(d32, c2), hn::BitCast(d32, hn::Set(d, 0xCD9E8D57)));
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c1), keys0);
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c3), keys1);
    c1 = product1;
    c3 = product0;
  }
  // Interleaving the blocks within 128 bits puts them in order.
  HWY_INLINE void write(D d, uint32_t* words) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<uint32_t, D> d32;
    const V low = hn::Set(d, 0xFFFFFFFF);
    const V words01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1));
    const V words23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d, words01, words23)), d32, words);
    hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d, words01, words23)), d32,
               words + 2 * static_cast<int64_t>(hn::Lanes(d)));
  }

  V c0, c1, c2, c3;
};

HWY_INLINE const uint32_t* random_words(const RandomStream& stream, int64_t first, int64_t count,
                                        uint32_t* HWY_RESTRICT buffer) {
  namespace hn = hwy::HWY_NAMESPACE;
  using D = hn::ScalableTag<uint64_t>;
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  // Even lanes count the first half of the blocks, odd lanes the second half.
  HWY_ALIGN uint64_t start[HWY_MAX_BYTES / 8];
  for (int64_t i = 0; i < lanes; ++i)
    start[i] = static_cast<uint64_t>(first / 4 + i / 2 + (i % 2) * (lanes / 2));
  auto counter = hn::Load(d, start);
  const auto step = hn::Set(d, static_cast<uint64_t>(lanes));
  const auto next_blocks = [&]() HWY_ATTR {
    const PhiloxBlocks<D> blocks{counter, hn::ShiftRight<32>(counter), hn::Set(d, stream.number),
                                 hn::Set(d, stream.number >> 32)};
    counter = hn::Add(counter, step);
    return blocks;
  };
  const auto write = [&](uint32_t* words, auto... blocks) HWY_ATTR {
    uint32_t key0 = static_cast<uint32_t>(stream.seed);
    uint32_t key1 = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const auto keys0 = hn::Set(d, uint64_t{key0}), keys1 = hn::Set(d, uint64_t{key1});
      (blocks.round(d, keys0, keys1), ...);
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    ((blocks.write(d, words), words += 4 * lanes), ...);
  };
  const int64_t skipped = first % 4;
  int64_t i = 0;
  // Four at a time: while the rounds of one wait for its products, the others have theirs.
  for (; i + 12 * lanes < skipped + count; i += 16 * lanes) {
    const auto a = next_blocks(), b = next_blocks(), c = next_blocks(), e = next_blocks();
    write(buffer + i, a, b, c, e);
  }
  for (; i < skipped + count; i += 4 * lanes) write(buffer + i, next_blocks());
  return buffer + skipped;
}
#endif

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
