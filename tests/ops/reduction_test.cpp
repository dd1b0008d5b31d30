#include "framework/ops/reduction.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/support.h"

namespace gs {
namespace {

Reduction reduction(const Shape& shape, std::vector<int64_t> dimensions, bool keep = false) {
  return Reduction("sum", shape, dimensions, keep);
}

TEST(Reduction, NeighbouringDimensionsAreSeenInPlace) {
  const Reduction middle = reduction({2, 3, 4, 5}, {1, -2});
  EXPECT_TRUE(middle.order.empty());
  EXPECT_EQ(middle.rows.outer, 2);
  EXPECT_EQ(middle.rows.length, 12);
  EXPECT_EQ(middle.rows.inner, 5);
  EXPECT_EQ(middle.kept, Shape({2, 1, 1, 5}));
  EXPECT_EQ(middle.result, Shape({2, 5}));
  EXPECT_EQ(reduction({2, 3}, {1}, true).result, Shape({2, 1}));
  EXPECT_EQ(reduction({2, 3}, {}).result, Shape());
}

TEST(Reduction, OthersArePermutedAndBack) {
  const Reduction ends = reduction({2, 3, 2}, {0, 2});
  EXPECT_EQ(ends.rows.length, 4);
  EXPECT_EQ(ends.result, Shape({3}));
  std::vector<float> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Array x = Array::of<float>({2, 3, 2}, values);
  const Array rows = ends.arranged(x);
  EXPECT_EQ(rows.values<float>(), (std::vector<float>{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_EQ(ends.restored(rows).values<float>(), values);
}

TEST(Reduction, RefusesRepeatedAndMissingDimensions) {
  EXPECT_EQ(test::error_of([] { reduction({2, 3}, {1, -1}); }), "sum: dimension 1 is given twice");
  EXPECT_EQ(test::error_of([] {
              reduction({2, 3}, {2});
            }),
            "sum: no dimension 2 in rank 2; use -2 to 1");
}

}  // namespace
}  // namespace gs
