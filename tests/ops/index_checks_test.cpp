#include "framework/ops/index_checks.h"

#include <gtest/gtest.h>

#include "framework/ops/cross_entropy.h"
#include "framework/ops/embedding.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

TEST(IndexChecks, GiveTheFirstOneOutside) {
  test::for_each_device([](Device device) {
    const Tensor indices = Tensor::of<int32_t>({4}, {0, 2, 3, -1}).to(device);
    EXPECT_EQ(first_outside(indices, 4), 3);
    EXPECT_EQ(first_outside(indices, 4, -1), -1);
    EXPECT_EQ(first_outside(indices, 3, -1), 2);
    EXPECT_EQ(test::error_of([&] { check_indices("gather", indices, 3, device); }),
              "gather: index 3 at position 2 is outside 0..2");
  });
}

// Nothing is looked at while they are trusted, and all is once more after that.
TEST(IndexChecks, TrustedIndicesAreNotSearched) {
  test::for_each_device([](Device device) {
    const Tensor indices = Tensor::of<int32_t>({2}, {0, 7}).to(device);
    {
      const TrustedIndices trusted;
      { const TrustedIndices nested; }
      EXPECT_TRUE(trusts_indices());
      EXPECT_EQ(first_outside(indices, 3), -1);
      check_indices("gather", indices, 3, device);
    }
    EXPECT_FALSE(trusts_indices());
    EXPECT_EQ(first_outside(indices, 3), 1);
    const Tensor table = Tensor::of<float>({3, 1}, {1, 2, 3}).to(device);
    EXPECT_EQ(test::error_of([&] { embedding(table, indices); }),
              "embedding: index 7 at position 1 is outside 0..2");
    const Tensor logits = Tensor::of<float>({2, 2}, {1, 2, 3, 4}).to(device);
    EXPECT_EQ(test::error_of([&] { cross_entropy(logits, indices); }),
              "cross_entropy: target 7 at position 1 is outside 0..1");
  });
}

}  // namespace
}  // namespace gs
