#include "framework/ops/slice.h"

#include "framework/ops/arithmetic.h"
#include "framework/ops/cast.h"
#include "framework/ops/join.h"
#include "tests/support/movement.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

test::Operation taking(int64_t dimension, int64_t start, int64_t end = kEnd, int64_t step = 1) {
  return [=](const std::vector<Tensor>& in) { return slice(in[0], dimension, start, end, step); };
}

TEST(Slice, TakesPlacesOfOneDimension) {
  expect_movement(taking(0, 1, 3), {{4, 2}}, {2, 2}, {2, 3, 4, 5});
  expect_movement(taking(1, 1, 2), {{2, 3, 2}}, {2, 1, 2}, {2, 3, 8, 9});
  expect_movement(taking(-1, -2), {{2, 3}}, {2, 2}, {1, 2, 4, 5});
  expect_movement(taking(-1, 0, -1), {{2, 3}}, {2, 2}, {0, 1, 3, 4});
  expect_movement(taking(0, 0), {{2, 3}}, {2, 3}, {0, 1, 2, 3, 4, 5});
  expect_movement(taking(0, 2, 2), {{3}}, {0}, {});
  expect_movement(taking(0, 0), {{0, 3}}, {0, 3}, {});
  expect_movement(taking(1, 1, 3), {{0, 3}}, {0, 2}, {});
}

TEST(Slice, Steps) {
  expect_movement(taking(0, 0, kEnd, 2), {{5}}, {3}, {0, 2, 4});
  expect_movement(taking(0, 1, 4, 2), {{5}}, {2}, {1, 3});
  expect_movement(taking(0, 1, kEnd, 9), {{5}}, {1}, {1});
  expect_movement(taking(1, 1, kEnd, 2), {{2, 5, 2}}, {2, 2, 2}, {2, 3, 6, 7, 12, 13, 16, 17});
  expect_movement(taking(1, 0, kEnd, 2), {{3, 4}}, {3, 2}, {0, 2, 4, 6, 8, 10});
  expect_movement(taking(0, 3, 3, 2), {{5}}, {0}, {});
}

TEST(Slice, RefusesWhatLiesOutside) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(error_of([&] { slice(x, 1, 0, 4); }),
            "slice: 0 to 4 is not within dimension 1, got shape [2, 3]; use 0 <= start <= end <= "
            "3");
  EXPECT_EQ(error_of([&] { slice(x, -1, -4); }),
            "slice: -4 to 3 is not within dimension -1, got shape [2, 3]; use 0 <= start <= end <= "
            "3");
  EXPECT_EQ(error_of([&] { slice(x, 1, 2, 1); }),
            "slice: 2 to 1 is not within dimension 1, got shape [2, 3]; use 0 <= start <= end <= "
            "3");
  EXPECT_EQ(error_of([&] { slice(x, 0, INT64_MAX, INT64_MIN); }),
            "slice: 9223372036854775807 to -9223372036854775808 is not within dimension 0, got "
            "shape [2, 3]; use 0 <= start <= end <= 2");
  EXPECT_EQ(error_of([&] { slice(x, 0, 0, 2, 0); }), "slice: the step must be 1 or more, got 0");
  EXPECT_EQ(error_of([&] { slice(x, 2, 0); }), "slice: no dimension 2 in rank 2; use -2 to 1");
  EXPECT_EQ(slice(x, 1, 0, kEnd, INT64_MAX).values<double>(), (std::vector<double>{0, 3}));
}

TEST(Slice, IsACopyAndOverlapsAddUp) {
  const Tensor x = counted({4}).set_needs_grad();
  EXPECT_FALSE(slice(x, 0, 0).shares_storage(x));
  slice(x, 0, 0, 3).backward(counted({3}, kFloat64, 1));
  slice(x, 0, 1, 4).backward(counted({3}, kFloat64, 10));
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{1, 12, 14, 12}));
}

// Several slices of one tensor: each gradient is added to those of the others, in its places alone.
TEST(Slice, GradientsOfSeveralSlicesAddUp) {
  const auto several = [](const std::vector<Tensor>& in) {
    const Tensor& x = in[0];
    const Tensor a = slice(x, 1, 0, 4, 2), b = slice(x, 1, 1, 3), c = slice(x, 1, 3, 5);
    const Tensor rows = slice(x, 0, 0, 3, 2) * slice(x, 0, 1, 3);  // (2, 5, 2)
    return a * b + c * slice(x, 1, 0, 2) + slice(concat({rows, slice(x, 0, 1, 2)}, 0), 1, 2, 4);
  };
  test::check_operation("several slices", several, {cast(counted({3, 5, 2}), kFloat64) * 0.1});
}

}  // namespace
}  // namespace gs
