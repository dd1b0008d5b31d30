#include "framework/core/random.h"

#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

// Known answers of the Random123 distribution, kat_vectors, philox4x32 10.
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Generator, RestoresItsState) {
  Generator generator(7);
  generator.next();
  const RandomState state = generator.state();
  const RandomStream a = generator.next();
  generator.restore(state);
  const RandomStream b = generator.next();
  EXPECT_EQ(a.words(5), b.words(5));
}

TEST(RelativeStreams, CountFromTheirBaseAndLeaveTheGeneratorAsItWas) {
  Generator generator(7);
  for (int i = 0; i < 3; ++i) generator.next();
  const RandomState before = generator.state();
  uint64_t base = 0;
  RandomStream first, second;
  {
    const RelativeStreams relative(generator, &base);
    first = generator.next();
    second = generator.next();
    EXPECT_EQ(relative.drawn(), 2u);
  }
  EXPECT_EQ(generator.state(), before);
  // The next streams, and those of a later step, whatever the words' place.
  for (const uint64_t start : {before.next_stream, uint64_t{1} << 40}) {
    base = start;
    generator.restore({7, start});
    EXPECT_EQ(first.words(5), generator.next().words(5));
    EXPECT_EQ(second.words(1ull << 33), generator.next().words(1ull << 33));
  }
}

TEST(RelativeStreams, RefuseOtherGeneratorsAndNesting) {
  Generator generator(1), other(2);
  const uint64_t base = 0;
  {
    const RelativeStreams relative(generator, &base);
    EXPECT_EQ(test::error_of([&] { other.next(); }),
              "random: work that is recorded draws from another generator than the recorder's; use "
              "one generator");
    EXPECT_EQ(test::error_of([&] { RelativeStreams(other, &base); }),
              "random: streams are relative already; end that first");
  }
  EXPECT_EQ(other.next().base, nullptr);
  EXPECT_EQ(other.state().next_stream, 1u);
}

}  // namespace
}  // namespace gs
