#include "framework/ops/cast.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

TEST(Cast, ConvertsBetweenAllTypes) {
  const Tensor x = Tensor::of<double>({6}, {-1.75, 0, 0.5, 3e9, NAN, -INFINITY});
  EXPECT_EQ(cast(x, kInt32).values<int32_t>(),
            (std::vector<int32_t>{-1, 0, 0, INT32_MAX, 0, INT32_MIN}));
  EXPECT_EQ(cast(x, kBool).values<bool>(),
            (std::vector<bool>{true, false, true, true, true, true}));
  test::expect_near(cast(x, kFloat32), {-1.75, 0, 0.5, 3e9, NAN, -INFINITY}, 0);
  EXPECT_EQ(cast(Tensor::of<bool>({2}, {true, false}), kFloat64).values<double>(),
            (std::vector<double>{1, 0}));
  // 1 + 2^-9 has one bit more than bfloat16.
  const Tensor near_one = Tensor::of<float>({2}, {1 + 0x1p-9f, 1 + 0x1p-7f});
  EXPECT_EQ(cast(cast(near_one, kBFloat16), kFloat32).values<float>(),
            (std::vector<float>{1, 1 + 0x1p-7f}));
  EXPECT_EQ(cast(Tensor(Array::zeros({0, 2}, kFloat32)), kInt32).shape(), Shape({0, 2}));
}

TEST(Cast, TheSameTypeIsTheSameTensor) {
  Tensor x = test::random_tensor<float>({3}, 1).set_needs_grad();
  EXPECT_TRUE(cast(x, kFloat32).shares_storage(x));
  EXPECT_TRUE(cast(x, kFloat32).is_leaf());
}

TEST(Cast, GradientIsCastBack) {
  Tensor x = Tensor::of<float>({3}, {1, 2, 3}).set_needs_grad();
  const Tensor y = cast(x, kFloat64);
  y.backward(Tensor::of<double>({3}, {0.1, -2, 1e300}));
  EXPECT_EQ(x.gradient().dtype(), kFloat32);
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{0.1f, -2, INFINITY}));

  Tensor wide = Tensor::of<double>({2}, {1, 2}).set_needs_grad();
  cast(wide, kFloat32).backward(Tensor::of<float>({2}, {3, 4}));
  EXPECT_EQ(wide.gradient().values<double>(), (std::vector<double>{3, 4}));
  EXPECT_FALSE(cast(wide, kInt32).needs_grad());
}

TEST(Cast, ThereAndBackHoldsWhatOperationsMust) {
  // Through float64 nothing is lost, so that differences can be taken.
  const auto there_and_back = [](const std::vector<Tensor>& in) {
    return cast(cast(in[0], kFloat64), in[0].dtype());
  };
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0}})
    test::check_operation("cast", there_and_back, {test::random_tensor<double>(shape, 1)},
                          [](const std::vector<std::vector<double>>& in) { return in[0]; });
}

TEST(Cast, RefusesToCutTheGraph) {
  Tensor x = test::random_tensor<float>({3}, 1).set_needs_grad();
  EXPECT_EQ(test::error_of([&] { cast(x, kBFloat16); }),
            "cast: has no gradient, and an input needs one; detach it first");
  EXPECT_EQ(test::error_of([] { cast(Tensor(), kFloat32); }),
            "cast: got an undefined tensor; give it values first");
}

}  // namespace
}  // namespace gs
