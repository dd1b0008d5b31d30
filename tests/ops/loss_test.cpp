#include "framework/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/tensor/gradcheck.h"

namespace gs {
namespace {

template <typename T>
Tensor scalar(double value) {
  return Tensor::of<T>({}, {static_cast<T>(value)}).set_needs_grad();
}

template <typename T>
void expect_mean() {
  const Tensor sum = scalar<T>(10);
  const Loss loss{.sum = sum, .count = 4};
  const Tensor mean = loss.mean();
  EXPECT_EQ(mean.shape(), Shape());
  EXPECT_EQ(mean.dtype(), dtype_of<T>);
  EXPECT_EQ(mean.item(), 2.5);
  mean.backward();
  EXPECT_EQ(sum.gradient().item(), 0.25);
  loss.mean().backward(Tensor::of<T>({}, {2}));
  EXPECT_EQ(sum.gradient().item(), 0.75);
}

TEST(Loss, MeanIsTheSumOverTheCount) {
  expect_mean<float>();
  expect_mean<double>();
}

TEST(Loss, MeanHasTheRightGradient) {
  const auto mean = [](const std::vector<Tensor>& x) {
    return Loss{.sum = x[0], .count = 7}.mean();
  };
  const GradcheckResult result = gradcheck(mean, {Tensor::of<double>({}, {3})});
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_EQ(result.checked, 1);
}

TEST(Loss, MeanOfNothingIsZeroWithZeroGradients) {
  const Tensor sum = scalar<float>(0);
  const Tensor mean = Loss{.sum = sum, .count = 0}.mean();
  EXPECT_EQ(mean.item(), 0);
  mean.backward();
  EXPECT_EQ(sum.gradient().item(), 0);
}

// Averages of averages would give (2 + 4) / 2 = 3.
TEST(Loss, SumsAndCountsAddUp) {
  const Loss first{.sum = scalar<double>(6), .count = 3},
      second{.sum = scalar<double>(4), .count = 1};
  const Loss both{.sum = first.sum + second.sum, .count = first.count + second.count};
  EXPECT_EQ(both.mean().item(), 2.5);
  both.mean().backward();
  EXPECT_EQ(first.sum.gradient().item(), 0.25);
  EXPECT_EQ(second.sum.gradient().item(), 0.25);
}

TEST(Loss, MeanKeepsWhatIsNotFinite) {
  EXPECT_TRUE(std::isnan(Loss{.sum = scalar<float>(NAN), .count = 2}.mean().item()));
  EXPECT_EQ((Loss{.sum = scalar<float>(INFINITY), .count = 2}.mean().item()), INFINITY);
}

TEST(Loss, MeanLeavesNoNode) {
  const Tensor sum = scalar<float>(1);
  const int64_t nodes = live_nodes();
  Loss{.sum = sum, .count = 2}.mean().backward();
  EXPECT_EQ(live_nodes(), nodes);
}

}  // namespace
}  // namespace gs
