#include "framework/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/tensor/gradcheck.h"
#include "tests/support/support.h"

namespace gs {
namespace {

template <typename T>
Tensor numbers(const Shape& shape, int seed) {
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(std::sin(static_cast<double>(i) * 1.7 + seed));
  }
  return Tensor::of<T>(shape, values);
}

TEST(Linear, EqualsItsDefinition) {
  const Tensor x = numbers<double>({2, 3, 5}, 1), weight = numbers<double>({4, 5}, 2),
               bias = numbers<double>({4}, 3);
  const Tensor y = linear(x, weight, bias);
  ASSERT_EQ(y.shape(), Shape({2, 3, 4}));
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t o = 0; o < 4; ++o) {
      double sum = bias.value().data<double>()[o];
      for (int64_t i = 0; i < 5; ++i)
        sum += x.value().data<double>()[r * 5 + i] * weight.value().data<double>()[o * 5 + i];
      EXPECT_NEAR(y.value().data<double>()[r * 4 + o], sum, 1e-14);
    }
  }
}

TEST(Linear, GradientsAreRight) {
  const auto with_bias = [](const std::vector<Tensor>& in) { return linear(in[0], in[1], in[2]); };
  const auto without = [](const std::vector<Tensor>& in) { return linear(in[0], in[1]); };
  for (const Shape& shape : {Shape({7, 5}), Shape({2, 1, 5}), Shape({5}), Shape({0, 5})}) {
    const std::vector<Tensor> inputs{numbers<double>(shape, 1), numbers<double>({3, 5}, 2),
                                     numbers<double>({3}, 3)};
    const GradcheckResult result = gradcheck(with_bias, inputs);
    EXPECT_TRUE(result.passed) << result.message;
    EXPECT_TRUE(gradcheck(without, {inputs[0], inputs[1]}).passed);
  }
}

// pytorch/pytorch#31421: a product over nothing must not show uninitialised memory.
TEST(Linear, WithoutInputsGivesTheBias) {
  const Tensor y =
      linear(Tensor(Array::empty({2, 0}, kFloat32)), Tensor(Array::empty({3, 0}, kFloat32)),
             Tensor::of<float>({3}, {1, 2, 3}));
  EXPECT_EQ(y.values<float>(), (std::vector<float>{1, 2, 3, 1, 2, 3}));
}

TEST(Linear, RefusesWrongSizes) {
  const Tensor x = numbers<float>({2, 5}, 1), weight = numbers<float>({4, 6}, 2);
  EXPECT_EQ(test::error_of([&] { linear(x, weight); }),
            "linear: the last size of the input must be 6, got [2, 5]; weights are (out, in), here "
            "[4, 6]");
  EXPECT_EQ(test::error_of([&] {
              linear(x, numbers<float>({4, 5}, 1), numbers<float>({5}, 1));
            }),
            "linear: the bias must be [4] float32, got [5] float32");
  EXPECT_EQ(test::error_of([&] {
              linear(x, numbers<double>({4, 5}, 1));
            }),
            "linear: input is float32 on cpu, weight float64 on cpu; convert one");
}

}  // namespace
}  // namespace gs
