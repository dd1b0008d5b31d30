#include "framework/core/shape.h"

#include <gtest/gtest.h>

#include "framework/core/error.h"

namespace gs {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({2, 0, 4}).elements(), 0);
  EXPECT_EQ(Shape().elements(), 1);
}

TEST(Shape, RefusesNegativeAndOverflowingSizes) {
  EXPECT_THROW(Shape({2, -1}), Error);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(Shape, BroadcastsAlignedAtTheLastDimension) {
  EXPECT_EQ(broadcast_shapes("add", {2, 1, 3}, {4, 1}), Shape({2, 4, 3}));
  EXPECT_EQ(broadcast_shapes("add", {0}, {1}), Shape({0}));
  EXPECT_THROW(broadcast_shapes("add", {2}, {3}), Error);
}

TEST(Shape, DimensionErrorsNameTheDimension) {
  try {
    normalize_dimension("permute", -5, 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "permute: no dimension -5 in rank 4; use -4 to 3");
  }
}

}  // namespace
}  // namespace gs
