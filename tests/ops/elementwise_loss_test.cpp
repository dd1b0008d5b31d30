#include "framework/ops/elementwise_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

TEST(MseLoss, SumsSquaresAndCountsElements) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4}),
               target = Tensor::of<float>({2, 2}, {1, 0, 6, 4.5f});
  const Loss loss = mse_loss(x, target);
  EXPECT_EQ(loss.sum.item(), 13.25);
  EXPECT_EQ(loss.count, 4);
  EXPECT_EQ(loss.mean().item(), 3.3125);
}

TEST(MseLoss, LongSumsKeepTheirDigits) {
  const Tensor x(Array::full({3000001}, 0.1, kFloat32)), zero(Array::zeros({3000001}, kFloat32));
  EXPECT_NEAR(mse_loss(x, zero).sum.item(), 3000001 * std::pow(0.1f, 2), 0.02);
}

TEST(BinaryCrossEntropy, HasTheValuesOfItsFormula) {
  // log(1 + e^-2) and log(1 + e^2), and their even mixture
  const Tensor x = Tensor::of<double>({3}, {2, 2, 2}),
               target = Tensor::of<double>({3}, {1, 0, 0.5});
  const Loss loss = binary_cross_entropy_with_logits(x, target);
  EXPECT_NEAR(loss.sum.item(), 0.1269280110 + 2.1269280110 + 1.1269280110, 1e-9);
  EXPECT_EQ(loss.negative_log_likelihood_sum.item(), loss.sum.item());
  EXPECT_EQ(loss.count, 3);
}

TEST(BinaryCrossEntropy, BigLogitsDoNotOverflow) {
  Tensor x = Tensor::of<float>({6}, {1e4f, -1e4f, 1e4f, -1e4f, 1e30f, -1e30f});
  x.set_needs_grad();
  const Loss loss = binary_cross_entropy_with_logits(x, Tensor::of<float>({6}, {1, 0, 0, 1, 1, 0}));
  EXPECT_EQ(loss.sum.item(), 2e4);
  loss.sum.backward();
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{0, 0, 1, -1, 0, 0}));
}

TEST(ElementwiseLoss, FloatAgreesWithDouble) {
  test::for_each_instruction_set([] {
    for (const int64_t size : {1, 3, 15, 16, 17, 33, 4095, 4097, 20000}) {
      for (const auto loss : {mse_loss, binary_cross_entropy_with_logits}) {
        Tensor x = random_tensor<float>({size}, 1), target = random_tensor<float>({size}, 2);
        Tensor exact_x(x.value().to(kFloat64)), exact_target(target.value().to(kFloat64));
        for (Tensor* tensor : {&x, &target, &exact_x, &exact_target}) tensor->set_needs_grad();
        const Loss y = loss(x, target), exact = loss(exact_x, exact_target);
        expect_near(y.sum, exact.sum.values<double>(), 1e-6);
        y.sum.backward();
        exact.sum.backward();
        expect_near(x.gradient(), exact_x.gradient().values<double>(), 1e-6);
        expect_near(target.gradient(), exact_target.gradient().values<double>(), 1e-6);
      }
    }
  });
}

TEST(ElementwiseLoss, PassesGradcheckForBothInputs) {
  for (const auto loss : {mse_loss, binary_cross_entropy_with_logits}) {
    for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{1}, Shape{0, 2}}) {
      const auto mean = [&](const std::vector<Tensor>& in) { return loss(in[0], in[1]).mean(); };
      const GradcheckResult result =
          gradcheck(mean, {random_tensor<double>(shape, 1), random_tensor<double>(shape, 2)});
      EXPECT_TRUE(result.passed) << shape.text() << ": " << result.message;
    }
  }
}

TEST(ElementwiseLoss, NotANumberIsNotHidden) {
  const Tensor x = Tensor::of<float>({2}, {NAN, 1}), zero(Array::zeros({2}, kFloat32));
  EXPECT_TRUE(std::isnan(mse_loss(x, zero).sum.item()));
  EXPECT_TRUE(std::isnan(binary_cross_entropy_with_logits(x, zero).sum.item()));
}

TEST(ElementwiseLoss, RefusesUnlikeInputs) {
  const Tensor x(Array::zeros({2}, kFloat32));
  EXPECT_EQ(error_of([&] {
              mse_loss(x, Tensor(Array::zeros({2, 1}, kFloat32)));
            }),
            "mse_loss: x and target must be alike, got [2] float32 on cpu and [2, 1] float32 on "
            "cpu");
  EXPECT_EQ(
      error_of([&] { binary_cross_entropy_with_logits(x, Tensor(Array::zeros({2}, kFloat64))); }),
      "binary_cross_entropy_with_logits: x and target must be alike, got [2] float32 on cpu "
      "and [2] float64 on cpu");
  const Tensor integer(Array::zeros({2}, kInt32));
  EXPECT_EQ(error_of([&] { mse_loss(integer, integer); }),
            "mse_loss: needs float32 or float64, got int32; cast it first");
}

}  // namespace
}  // namespace gs
