#include "datasets/fingerprint_set.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "framework/core/xoshiro.h"

namespace gs {
namespace {

TEST(FingerprintSet, AgreesWithAnOrdinarySet) {
  FingerprintSet set;
  std::unordered_set<uint64_t> reference;
  Xoshiro random(5);
  EXPECT_EQ(set.size(), 0);
  for (int i = 0; i < 50000; ++i) {
    // Few values, crowded low bits, zero among them.
    const uint64_t fingerprint = random.below(200) << (8 * random.below(4));
    EXPECT_EQ(set.insert(fingerprint), reference.insert(fingerprint).second);
    const uint64_t any = random.next() % 40000;
    EXPECT_EQ(set.insert(any), reference.insert(any).second);
    EXPECT_EQ(set.size(), static_cast<int64_t>(reference.size()));
  }
  EXPECT_EQ(reference.count(0), 1u);
}

}  // namespace
}  // namespace gs
