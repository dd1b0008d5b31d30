#include "framework/ops/join.h"

#include "tests/support/movement.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

test::Operation joined(int64_t dimension) {
  return [=](const std::vector<Tensor>& in) { return concat(in, dimension); };
}
test::Operation stacked(int64_t dimension) {
  return [=](const std::vector<Tensor>& in) { return stack(in, dimension); };
}

TEST(Concat, JoinsInEveryDimension) {
  expect_movement(joined(0), {{1, 2}, {2, 2}}, {3, 2}, {0, 1, 2, 3, 4, 5});
  expect_movement(joined(-1), {{2, 1}, {2, 2}}, {2, 3}, {0, 2, 3, 1, 4, 5});
  expect_movement(joined(1), {{2, 1, 2}, {2, 2, 2}, {2, 0, 2}}, {2, 3, 2},
                  {0, 1, 4, 5, 6, 7, 2, 3, 8, 9, 10, 11});
  expect_movement(joined(0), {{3}}, {3}, {0, 1, 2});
  expect_movement(joined(1), {{0, 2}, {0, 3}}, {0, 5}, {});
  EXPECT_FALSE(concat({counted({3})}).shares_storage(counted({3})));
}

TEST(Concat, OneTensorTwiceGetsBothGradients) {
  const Tensor x = counted({2}).set_needs_grad(), fixed = counted({1});
  concat({x, fixed, x}).backward(counted({5}, kFloat64, 1));
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{1 + 4, 2 + 5}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of([] { concat(std::vector<Tensor>()); }),
            "concat: at least one tensor is needed");
  EXPECT_EQ(error_of([] {
              concat({counted({}), counted({})});
            }),
            "concat: scalars have no dimension to join in; use stack");
  EXPECT_EQ(error_of([] {
              concat({counted({2, 3}), counted({2, 4})});
            }),
            "concat: tensor 1 must have the sizes of the first but in dimension 0, got [2, 4] and "
            "[2, 3]");
  EXPECT_EQ(error_of([] {
              concat({counted({2, 3}), counted({2})});
            }),
            "concat: tensor 1 must have the sizes of the first but in dimension 0, got [2] and "
            "[2, 3]");
  EXPECT_EQ(error_of([] {
              concat({counted({2}), counted({2}, kFloat32)});
            }),
            "concat: tensor 1 must be float64 on cpu as the first, got float32 on cpu; cast or "
            "move it");
  EXPECT_EQ(error_of([] { concat({counted({2})}, 1); }),
            "concat: no dimension 1 in rank 1; use -1 to 0");
}

TEST(Stack, AddsADimension) {
  expect_movement(stacked(0), {{2}, {2}}, {2, 2}, {0, 1, 2, 3});
  expect_movement(stacked(-1), {{2}, {2}, {2}}, {2, 3}, {0, 2, 4, 1, 3, 5});
  expect_movement(stacked(1), {{2, 2}, {2, 2}}, {2, 2, 2}, {0, 1, 4, 5, 2, 3, 6, 7});
  expect_movement(stacked(0), {{}, {}}, {2}, {0, 1});
  expect_movement(stacked(1), {{2, 0}}, {2, 1, 0}, {});
  EXPECT_EQ(error_of([] {
              stack({counted({2}), counted({1})});
            }),
            "stack: tensor 1 must have the shape of the first, got [1] and [2]");
}

TEST(Split, GivesSlices) {
  const auto part = [](size_t i) {
    return [i](const std::vector<Tensor>& in) { return split(in[0], {1, 0, 2}, 1)[i]; };
  };
  expect_movement(part(0), {{2, 3}}, {2, 1}, {0, 3});
  expect_movement(part(1), {{2, 3}}, {2, 0}, {});
  expect_movement(part(2), {{2, 3}}, {2, 2}, {1, 2, 4, 5});
  const auto half = [](const std::vector<Tensor>& in) { return split(in[0], 2, -1)[1]; };
  expect_movement(half, {{2, 4}}, {2, 2}, {2, 3, 6, 7});
  EXPECT_EQ(split(counted({0, 2}), 3).size(), 3u);
}

TEST(Split, JoinsBackToTheWhole) {
  const Tensor x = counted({3, 4}).set_needs_grad();
  const Tensor y = concat(split(x, {1, 3}, 1), 1);
  EXPECT_EQ(y.values<double>(), x.values<double>());
  y.backward(counted({3, 4}, kFloat64, 5));
  EXPECT_EQ(x.gradient().values<double>(), counted({3, 4}, kFloat64, 5).values<double>());
}

TEST(Split, RefusesWhatDoesNotAddUp) {
  const Tensor x = counted({2, 4});
  EXPECT_EQ(error_of([&] {
              split(x, {1, 2}, 1);
            }),
            "split: sizes must add up to 4 for dimension 1 of [2, 4], got [1, 2]");
  EXPECT_EQ(error_of([&] {
              split(x, {5, -1}, 1);
            }),
            "split: sizes must add up to 4 for dimension 1 of [2, 4], got [5, -1]");
  EXPECT_EQ(error_of([&] {
              split(x, {INT64_MAX, INT64_MAX, 6}, 1);
            }),
            "split: sizes must add up to 4 for dimension 1 of [2, 4], got [9223372036854775807, "
            "9223372036854775807, 6]");
  EXPECT_EQ(error_of([&] { split(x, 3, 1); }),
            "split: dimension 1 of [2, 4] has no 3 equal parts; give their sizes");
  EXPECT_EQ(error_of([&] { split(x, 0, 1); }),
            "split: dimension 1 of [2, 4] has no 0 equal parts; give their sizes");
}

}  // namespace
}  // namespace gs
