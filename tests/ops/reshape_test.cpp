#include "framework/ops/reshape.h"

#include "framework/ops/permute.h"
#include "framework/ops/softmax.h"
#include "tests/support/movement.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

void expect_reshaped(const Shape& from, const std::vector<int64_t>& sizes, const Shape& to) {
  expect_movement([&](const std::vector<Tensor>& in) { return reshape(in[0], sizes); }, {from}, to,
                  counted(from).values<double>());
}

TEST(Reshape, WorksOutOneSize) {
  expect_reshaped({2, 6}, {3, 4}, {3, 4});
  expect_reshaped({2, 6}, {-1}, {12});
  expect_reshaped({2, 6}, {3, -1, 2}, {3, 2, 2});
  expect_reshaped({1}, {}, {});
  expect_reshaped({}, {-1, 1}, {1, 1});
  expect_reshaped({0, 3}, {-1, 3}, {0, 3});
  expect_reshaped({0, 3}, {0, 7}, {0, 7});
  expect_reshaped({2, 0}, {5, -1}, {5, 0});
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  const Tensor x = counted({2, 6}), empty = counted({0, 3});
  EXPECT_EQ(error_of([&] {
              reshape(x, {5, -1});
            }),
            "reshape: 12 elements do not fill [5, -1], got shape [2, 6]");
  EXPECT_EQ(error_of([&] {
              reshape(x, {3, 5});
            }),
            "reshape: [3, 5] has 15 elements, got shape [2, 6] with 12");
  EXPECT_EQ(error_of([&] {
              reshape(x, {-1, -1});
            }),
            "reshape: sizes must be 0 or more and one may be -1, got [-1, -1]");
  EXPECT_EQ(error_of([&] {
              reshape(x, {-2, 6});
            }),
            "reshape: sizes must be 0 or more and one may be -1, got [-2, 6]");
  EXPECT_EQ(error_of([&] {
              reshape(empty, {0, -1});
            }),
            "reshape: any size would do for the -1 in [0, -1], since another is 0; name it");
  EXPECT_EQ(error_of([&] {
              reshape(x, {0, -1});
            }),
            "reshape: any size would do for the -1 in [0, -1], since another is 0; name it");
  EXPECT_EQ(error_of([&] {
              reshape(x, {int64_t{1} << 62, 4});
            }),
            "shape: too many elements, got [4611686018427387904, 4]");
  EXPECT_EQ(error_of([&] {
              reshape(x, {1, 1, 1, 1, 1, 1, 1, 1, 12});
            }),
            "shape: at most 8 dimensions, got 9");
}

// pytorch/pytorch#75510: whether reshape shares memory depended on the history of its input.
TEST(Reshape, AlwaysSharesMemoryWithItsInput) {
  Tensor x = counted({4, 3, 2});
  const Tensor y = reshape(x, {2, 3, 4});
  EXPECT_TRUE(y.shares_storage(x));
  x.add_in_place(Tensor(Array::full({4, 3, 2}, -100, kFloat64)));
  EXPECT_EQ(y.values<double>()[0], -100);
  const Tensor turned = transpose(x, 0, 2);
  EXPECT_FALSE(turned.shares_storage(x));
  EXPECT_TRUE(reshape(turned, {2, 3, 4}).shares_storage(turned));
  for (const Tensor& view :
       {squeeze(unsqueeze(x, 0)), flatten(x), reshape(x, {-1}), unsqueeze(x, -1)})
    EXPECT_TRUE(view.shares_storage(x));
}

// A value kept for a gradient and changed through another shape of it must not pass unnoticed.
TEST(Reshape, ChangesThroughASharedShapeAreNoticed) {
  const Tensor x = counted({2, 3}).set_needs_grad();
  const Tensor y = softmax(x, 1);
  Tensor flat = reshape(y.detach(), {6});
  flat.add_in_place(counted({6}));
  EXPECT_NE(error_of([&] {
              y.backward(counted({2, 3}));
            }).find("was changed in place"),
            std::string::npos);
}

TEST(Squeeze, DropsSizesOfOne) {
  const std::vector<double> six{0, 1, 2, 3, 4, 5};
  expect_movement([](const std::vector<Tensor>& in) { return squeeze(in[0]); }, {{1, 2, 1, 3}},
                  {2, 3}, six);
  expect_movement([](const std::vector<Tensor>& in) { return squeeze(in[0]); }, {{1, 1}}, {}, {0});
  expect_movement([](const std::vector<Tensor>& in) { return squeeze(in[0], -2); }, {{2, 1, 3}},
                  {2, 3}, six);
  EXPECT_EQ(error_of([] {
              squeeze(counted({2, 3}), -1);
            }),
            "squeeze: dimension -1 must have size 1, got shape [2, 3]");
  EXPECT_EQ(error_of([] { squeeze(counted({}), 0); }),
            "squeeze: no dimension 0 in rank 0; use 0 to -1");
}

TEST(Unsqueeze, AddsASizeOfOne) {
  const auto add = [](int64_t d) {
    return [d](const std::vector<Tensor>& in) { return unsqueeze(in[0], d); };
  };
  expect_movement(add(0), {{2, 2}}, {1, 2, 2}, {0, 1, 2, 3});
  expect_movement(add(-1), {{2, 2}}, {2, 2, 1}, {0, 1, 2, 3});
  expect_movement(add(-3), {{2, 0}}, {1, 2, 0}, {});
  expect_movement(add(0), {{}}, {1}, {0});
  EXPECT_EQ(error_of([] { unsqueeze(counted({2}), 2); }),
            "unsqueeze: no dimension 2 in rank 2; use -2 to 1");
}

TEST(Flatten, JoinsDimensions) {
  const std::vector<double> twelve = counted({12}).values<double>();
  expect_movement([](const std::vector<Tensor>& in) { return flatten(in[0]); }, {{2, 3, 2}}, {12},
                  twelve);
  expect_movement([](const std::vector<Tensor>& in) { return flatten(in[0], 1); }, {{2, 3, 2}},
                  {2, 6}, twelve);
  expect_movement([](const std::vector<Tensor>& in) { return flatten(in[0], 0, -2); }, {{2, 3, 2}},
                  {6, 2}, twelve);
  expect_movement([](const std::vector<Tensor>& in) { return flatten(in[0]); }, {{}}, {1}, {0});
  EXPECT_EQ(error_of([] {
              flatten(counted({2, 3}), 1, 0);
            }),
            "flatten: the first dimension must not come after the last, got 1 and 0");
}

}  // namespace
}  // namespace gs
