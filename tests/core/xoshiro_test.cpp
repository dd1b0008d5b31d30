#include "framework/core/xoshiro.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace gs {
namespace {

// The first words from seed 0 of the authors' splitmix64.c.
TEST(Splitmix64, MatchesKnownAnswers) {
  uint64_t state = 0;
  EXPECT_EQ(splitmix64(state), 0xE220A8397B1DCDAF);
  EXPECT_EQ(splitmix64(state), 0x6E789E6AA1B965F4);
  EXPECT_EQ(splitmix64(state), 0x06C45D188009454F);
}

// The first words of the authors' xoshiro256starstar.c from the state 1, 2, 3, 4.
TEST(Xoshiro, MatchesKnownAnswers) {
  Xoshiro random(Xoshiro::State{1, 2, 3, 4});
  for (const uint64_t word : {uint64_t{11520}, uint64_t{0}, uint64_t{1509978240},
                              uint64_t{1215971899390074240}, uint64_t{1216172134540287360},
                              uint64_t{607988272756665600}, uint64_t{16172922978634559625u}})
    EXPECT_EQ(random.next(), word);
}

TEST(Xoshiro, RestoresItsState) {
  Xoshiro random(7);
  random.next();
  Xoshiro copy(random.state());
  EXPECT_EQ(random.next(), copy.next());
}

TEST(Xoshiro, BoundedIntegersAreUniform) {
  Xoshiro random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(random.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);  // more than 5 standard deviations
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0u);
  // A bound just over half of the range: plain scaling would favour some integers two to one.
  const uint64_t bound = (uint64_t{1} << 63) + 1;
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(bound), bound);
}

TEST(Xoshiro, ChanceHasItsProbability) {
  Xoshiro random(2);
  int hits = 0;
  for (int i = 0; i < 100000; ++i) hits += random.chance(0.3);
  EXPECT_NEAR(hits, 30000, 750);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

TEST(Xoshiro, ShuffleKeepsTheValuesAndReachesEveryOrder) {
  Xoshiro random(3);
  std::map<std::vector<int>, int> orders;
  for (int i = 0; i < 24000; ++i) {
    std::vector<int> values{1, 2, 3, 4};
    random.shuffle(values);
    ++orders[values];
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values, (std::vector<int>{1, 2, 3, 4}));
  }
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 1000, 160);
  std::vector<int> empty;
  random.shuffle(empty);
  EXPECT_TRUE(empty.empty());
}

}  // namespace
}  // namespace gs
