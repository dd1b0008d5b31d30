#include "framework/ops/rms_norm.h"

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

TEST(RmsNorm, DividesByTheRootOfTheMeanSquare) {
  // mean(x^2) = 12.5
  const Tensor x = Tensor::of<double>({2}, {3, 4}), weight = Tensor::of<double>({2}, {1, -2});
  expect_near(rms_norm(x, weight, 0), {0.8485281374238570, -2.262741699796952}, 1e-15);
  expect_near(rms_norm(x, {}, 12.5), {0.6, 0.8}, 1e-15);
}

TEST(RmsNorm, AgreesWithTheFormulasInFloat) {
  test::for_each_instruction_set([] {
    for (int64_t width = 1; width <= 37; ++width) {
      Tensor x = random_tensor<float>({7, width}, 1), weight = random_tensor<float>({width}, 2);
      const Tensor dy = random_tensor<float>({7, width}, 3);
      const std::vector<double> xs = x.values<double>(), ws = weight.values<double>(),
                                us = dy.values<double>();
      const size_t n = static_cast<size_t>(width);
      std::vector<double> y(xs.size()), dx(xs.size()), dweight(n);
      for (size_t start = 0; start < xs.size(); start += n) {
        double square = 0, product = 0;
        for (size_t j = 0; j < n; ++j) square += xs[start + j] * xs[start + j];
        const double root = std::sqrt(square / static_cast<double>(n) + 1e-5);
        for (size_t j = 0; j < n; ++j) product += us[start + j] * ws[j] * xs[start + j] / root;
        for (size_t j = 0; j < n; ++j) {
          const size_t i = start + j;
          y[i] = xs[i] / root * ws[j];
          dweight[j] += us[i] * xs[i] / root;
          dx[i] = (us[i] * ws[j] - xs[i] / root * product / static_cast<double>(n)) / root;
        }
      }
      x.set_needs_grad();
      weight.set_needs_grad();
      const Tensor result = rms_norm(x, weight);
      result.backward(dy);
      expect_near(result, y, 1e-5);
      expect_near(x.gradient(), dx, 1e-4);
      expect_near(weight.gradient(), dweight, 1e-5);
    }
  });
}

TEST(RmsNorm, PassesGradcheck) {
  const auto weighted = [](const std::vector<Tensor>& in) { return rms_norm(in[0], in[1]); };
  const auto plain = [](const std::vector<Tensor>& in) { return rms_norm(in[0], {}, 0.5); };
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 2, 1}, Shape{11}, Shape{0, 4}}) {
    const Tensor x = random_tensor<double>(shape, 1),
                 w = random_tensor<double>({shape.size(-1)}, 2);
    for (const GradcheckResult& result : {gradcheck(weighted, {x, w}), gradcheck(plain, {x})})
      EXPECT_TRUE(result.passed) << shape.text() << ": " << result.message;
  }
}

TEST(RmsNorm, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32));
  EXPECT_EQ(error_of([&] { rms_norm(x, x); }),
            "rms_norm: weight must be [3] float32 on cpu, got [2, 3] float32 on cpu");
  EXPECT_EQ(error_of([&] { rms_norm(x, {}, NAN); }),
            "rms_norm: epsilon must be at least 0, got nan");
}

}  // namespace
}  // namespace gs
