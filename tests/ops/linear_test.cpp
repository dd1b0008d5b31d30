#include "framework/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "framework/ops/arithmetic.h"
#include "framework/ops/dropout.h"
#include "framework/ops/reduce.h"
#include "framework/ops/unary.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/operation_case.h"
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

// Inputs and weights used several times: each product adds to the gradient of the ones before.
TEST(Linear, AddsGradientsInPlace) {
  const auto chain = [](const std::vector<Tensor>& in) {
    const Tensor first = linear(in[0], in[1], in[2]), second = linear(in[0], in[1]);
    return linear(first * second + in[0], in[1], in[2]) + linear_relu(in[0], in[1]) + in[0];
  };
  test::check_operation(
      "chain of linear layers", chain,
      {numbers<double>({6, 4}, 1), numbers<double>({4, 4}, 2), numbers<double>({4}, 3)});
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
            "linear: the bias must be [4] float32 on cpu, got [5] float32 on cpu");
  EXPECT_EQ(test::error_of([&] {
              linear(x, Tensor::of<int32_t>({1, 5}, {1, 2, 3, 4, 5}));
            }),
            "linear: the weight must be (out, in) in float32 or float64, got [1, 5] int32");
  EXPECT_EQ(test::error_of([&] {
              linear(x, numbers<double>({4, 5}, 1));
            }),
            "linear: input is float32 on cpu, weight float64 on cpu; convert one");
}

// Dropout that is the same at every call.
Tensor fused(const std::vector<Tensor>& in, double probability) {
  Generator generator(5);
  return linear_relu(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), probability, true, generator);
}

Tensor composed(const std::vector<Tensor>& in, double probability) {
  Generator generator(5);
  return dropout(relu(linear(in[0], in[1], in.size() > 2 ? in[2] : Tensor())), probability, true,
                 generator);
}

// Values and gradients of both, which may sum in another order.
template <typename T>
void expect_equal_to_parts(int64_t rows, int64_t in, int64_t out, double probability) {
  std::vector<Tensor> inputs{numbers<T>({rows, in}, 1), numbers<T>({out, in}, 2),
                             numbers<T>({out}, 3)};
  for (Tensor& input : inputs) input.set_needs_grad();
  const Tensor upstream = numbers<T>({rows, out}, 4);
  std::vector<std::vector<double>> results[2];
  for (const bool whole : {true, false}) {
    const Tensor y = whole ? fused(inputs, probability) : composed(inputs, probability);
    results[whole].push_back(y.value().to(kFloat64).values<double>());
    y.backward(upstream);
    for (Tensor& input : inputs) {
      results[whole].push_back(input.gradient().value().to(kFloat64).values<double>());
      input.clear_gradient();
    }
  }
  const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-12;
  for (size_t r = 0; r < results[0].size(); ++r) {
    ASSERT_EQ(results[0][r].size(), results[1][r].size());
    for (size_t i = 0; i < results[0][r].size(); ++i) {
      ASSERT_NEAR(results[1][r][i], results[0][r][i], tolerance * (1 + std::abs(results[0][r][i])))
          << "result " << r << " element " << i << " of " << rows << " x " << in << " x " << out;
    }
  }
}

TEST(LinearRelu, EqualsItsParts) {
  test::for_each_instruction_set([] {
    // Fewer rows than outputs, blocks of rows with a rest, odd widths, nothing at all.
    for (const auto& [rows, in, out] : {std::tuple(3, 5, 7),
                                        {1, 1, 1},
                                        {40, 3, 130},
                                        {600, 9, 17},
                                        {1300, 4, 33},
                                        {0, 3, 2},
                                        {2, 0, 3},
                                        {5, 3, 0}}) {
      for (const double probability : {0.0, 0.3}) {
        expect_equal_to_parts<float>(rows, in, out, probability);
        expect_equal_to_parts<double>(rows, in, out, probability);
      }
    }
  });
}

TEST(LinearRelu, DoesWhatEveryOperationMust) {
  const std::vector<Tensor> inputs{numbers<double>({6, 5}, 1), numbers<double>({4, 5}, 2),
                                   numbers<double>({4}, 3)};
  for (const double probability : {0.0, 0.4}) {
    const auto operation = [&](const std::vector<Tensor>& in) { return fused(in, probability); };
    test::check_operation("linear_relu", operation, inputs);
    test::check_operation("linear_relu without bias", operation, {inputs[0], inputs[1]});
  }
}

TEST(LinearRelu, KeepsNanAndInfinity) {
  const Tensor x = Tensor::of<float>({3, 1}, {NAN, INFINITY, -INFINITY});
  const std::vector<float> y = linear_relu(x, Tensor::of<float>({1, 1}, {1})).values<float>();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
  EXPECT_EQ(y[2], 0);
}

TEST(LinearRelu, DropsInTrainingOnly) {
  const Tensor x = numbers<float>({50, 8}, 1), weight = numbers<float>({8, 8}, 2);
  Generator generator(1);
  EXPECT_EQ(linear_relu(x, weight, Tensor(), 0.5, false, generator).values<float>(),
            linear_relu(x, weight).values<float>());
  EXPECT_EQ(generator.state().next_stream, 0u);
  EXPECT_EQ(sum(linear_relu(x, weight, Tensor(), 1, true, generator)).item(), 0);
}

TEST(LinearRelu, RefusesWrongUse) {
  const Tensor x = numbers<float>({2, 5}, 1);
  EXPECT_EQ(test::error_of([&] {
              linear_relu(x, numbers<float>({4, 6}, 2));
            }),
            "linear_relu: the last size of the input must be 6, got [2, 5]; weights are (out, in), "
            "here [4, 6]");
  EXPECT_EQ(test::error_of([&] {
              linear_relu(x, numbers<float>({4, 5}, 2), Tensor(), 1.5);
            }),
            "linear_relu: dropout must be in [0, 1], got 1.5");
}

}  // namespace
}  // namespace gs
