#include "framework/ops/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/backend/memory.h"
#include "framework/core/parallel.h"
#include "framework/ops/linear.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/pytorch_operations.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::Fixture;
using test::random_tensor;

// Every fifth of them is the one to ignore.
constexpr int32_t kIgnored = -7;
Tensor some_targets(const Shape& shape, int64_t classes) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(i % 5 == 3 ? kIgnored : static_cast<int32_t>(i * 7 % classes));
  return Tensor::of<int32_t>(shape, values);
}

// An output layer: x (N, C), weight (V, C), bias (V) or undefined.
struct Layer {
  Tensor x, weight, bias;

  template <typename T>
  static Layer of(int64_t rows, int64_t width, int64_t classes, bool bias) {
    Layer layer{random_tensor<T>({rows, width}, 1), random_tensor<T>({classes, width}, 2),
                bias ? random_tensor<T>({classes}, 3) : Tensor()};
    for (Tensor* tensor : {&layer.x, &layer.weight, &layer.bias})
      if (tensor->defined()) tensor->set_needs_grad();
    return layer;
  }

  std::vector<std::vector<double>> gradients() const {
    std::vector<std::vector<double>> all;
    for (const Tensor& tensor : {x, weight, bias})
      if (tensor.defined()) all.push_back(tensor.gradient().values<double>());
    return all;
  }

  void clear() {
    for (Tensor* tensor : {&x, &weight, &bias})
      if (tensor->defined()) tensor->clear_gradient();
  }
};

// The composed form is the reference. Gradients are those of the mean, below 1 in size.
template <typename T>
void expect_composed(int64_t rows, int64_t width, int64_t classes, bool bias, double smoothing,
                     double tolerance) {
  SCOPED_TRACE(Shape({rows, width, classes}).text());
  Layer layer = Layer::of<T>(rows, width, classes, bias);
  const Tensor targets = some_targets({rows}, classes);
  const CrossEntropyOptions options{.ignore_index = kIgnored, .label_smoothing = smoothing};
  const Loss composed = cross_entropy(linear(layer.x, layer.weight, layer.bias), targets, options);
  composed.mean().backward();
  const auto expected = layer.gradients();
  layer.clear();
  const Loss loss = linear_cross_entropy(layer.x, layer.weight, layer.bias, targets, options);
  EXPECT_EQ(loss.count, composed.count);
  EXPECT_EQ(loss.correct, composed.correct);
  expect_near(loss.sum, composed.sum.values<double>(), tolerance);
  expect_near(loss.negative_log_likelihood_sum,
              composed.negative_log_likelihood_sum.values<double>(), tolerance);
  loss.mean().backward();
  const auto actual = layer.gradients();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (size_t k = 0; k < actual[i].size(); ++k)
      ASSERT_NEAR(actual[i][k], expected[i][k], tolerance) << "gradient " << i << ", element " << k;
  }
}

TEST(LinearCrossEntropy, AgreesWithTheComposedForm) {
  test::for_each_instruction_set([] {
    for (const bool bias : {false, true}) {
      for (const int64_t classes : {1, 2, 5, 17, 64, 301}) {
        expect_composed<float>(33, 7, classes, bias, classes % 2 * 0.1, 1e-5);
        expect_composed<double>(33, 7, classes, bias, classes % 2 * 0.1, 1e-12);
      }
    }
  });
}

// Chunks have at most 1024 rows, and 128 where there are many classes.
TEST(LinearCrossEntropy, AgreesWithTheComposedFormWhereChunksEnd) {
  for (const int64_t rows : {0, 1, 1023, 1024, 1025, 2049}) {
    expect_composed<float>(rows, 3, 5, true, 0.1, 1e-5);
    expect_composed<double>(rows, 3, 5, false, 0.1, 1e-12);
  }
  for (const int64_t rows : {1, 127, 128, 129, 257})
    expect_composed<float>(rows, 2, 25'000, rows % 2 == 0, 0.1, 1e-5);
  expect_composed<double>(700, 16, 6000, true, 0.1, 1e-12);
}

TEST(LinearCrossEntropy, DoesWhatAllOperationsDo) {
  for (const double smoothing : {0.0, 0.1}) {
    test::check_operation("linear_cross_entropy",
                          [&](const std::vector<Tensor>& in) {
                            return linear_cross_entropy(
                                       in[0], in[1], in[2], in[3],
                                       {.ignore_index = kIgnored, .label_smoothing = smoothing})
                                .sum;
                          },
                          {random_tensor<double>({6, 4}, 1), random_tensor<double>({9, 4}, 2),
                           random_tensor<double>({9}, 3), some_targets({6}, 9)});
  }
}

TEST(LinearCrossEntropy, PassesGradcheck) {
  const auto check_shape = [](const Shape& shape, int64_t classes, const Tensor& targets) {
    const auto loss = [&](const std::vector<Tensor>& in) {
      return linear_cross_entropy(in[0], in[1], in[2], targets,
                                  {.ignore_index = kIgnored, .label_smoothing = 0.2})
          .mean();
    };
    const GradcheckResult result = gradcheck(
        loss, {random_tensor<double>(shape, 1), random_tensor<double>({classes, shape.size(-1)}, 2),
               random_tensor<double>({classes}, 3)});
    EXPECT_TRUE(result.passed) << shape.text() << ": " << result.message;
  };
  check_shape({5}, 3, Tensor::of<int32_t>({}, {2}));
  check_shape({7, 3}, 5, some_targets({7}, 5));
  check_shape({2, 3, 4}, 6, some_targets({2, 3}, 6));
  check_shape({3, 1}, 1, some_targets({3}, 1));
  check_shape({0, 3}, 2, some_targets({0}, 2));
  check_shape({3, 0}, 4, some_targets({3}, 4));  // the bias alone decides
  check_shape({2, 3}, 0, Tensor::of<int32_t>({2}, {kIgnored, kIgnored}));
}

// With the identity as weight, the input is the logits.
TEST(LinearCrossEntropy, AgreesWithPyTorch) {
  const auto with_identity = [](const test::FixtureInputs& in, const Fixture& fixture) {
    const Tensor& x = in["logits"];
    const int64_t classes = x.size(-1);
    Array identity = Array::zeros({classes, classes}, kFloat64);
    for (int64_t i = 0; i < classes; ++i) identity.data<double>()[i * (classes + 1)] = 1;
    const Loss loss = linear_cross_entropy(x, Tensor(identity.to(x.dtype()).to(x.device())),
                                           Tensor(), in["targets"],
                                           {.ignore_index = in.integer("ignore_index"),
                                            .label_smoothing = in.option("label_smoothing")});
    EXPECT_EQ(static_cast<double>(loss.count), fixture.number("outputs/count"));
    return loss.sum;
  };
  test::expect_pytorch_agrees({{"cross_entropy", with_identity}});
}

TEST(LinearCrossEntropy, ComputesTheGradientsThatAreNeeded) {
  const Tensor targets = some_targets({20}, 6);
  const CrossEntropyOptions options{.ignore_index = kIgnored};
  Layer all = Layer::of<double>(20, 4, 6, true);
  linear_cross_entropy(all.x, all.weight, all.bias, targets, options).sum.backward();
  const auto expected = all.gradients();
  for (int needed = 0; needed < 8; ++needed) {
    Layer layer = Layer::of<double>(20, 4, 6, true);
    Tensor* const tensors[] = {&layer.x, &layer.weight, &layer.bias};
    for (int i = 0; i < 3; ++i) tensors[i]->set_needs_grad((needed >> i & 1) != 0);
    const Loss loss = linear_cross_entropy(layer.x, layer.weight, layer.bias, targets, options);
    EXPECT_EQ(loss.sum.needs_grad(), needed != 0);
    if (needed == 0) continue;
    loss.sum.backward();
    for (size_t i = 0; i < 3; ++i) {
      if (tensors[i]->needs_grad()) expect_near(tensors[i]->gradient(), expected[i], 1e-13);
    }
  }
  const NoGrad no_grad;
  EXPECT_FALSE(
      linear_cross_entropy(all.x, all.weight, all.bias, targets, options).sum.needs_grad());
}

TEST(LinearCrossEntropy, KeepsItsGradientsWhileTheGraphIsRetained) {
  Layer layer = Layer::of<double>(9, 3, 4, true);
  const Loss loss = linear_cross_entropy(layer.x, layer.weight, layer.bias, some_targets({9}, 4),
                                         {.ignore_index = kIgnored});
  const auto backward = [&](double upstream, bool retain_graph) {
    layer.clear();
    loss.sum.backward(Tensor::of<double>({}, {upstream}), {.retain_graph = retain_graph});
    return layer.gradients();
  };
  const auto once = backward(1, true);
  const auto expect_times = [&](double factor, bool retain_graph) {
    const auto scaled = backward(factor, retain_graph);
    for (size_t i = 0; i < once.size(); ++i) {
      for (size_t k = 0; k < once[i].size(); ++k)
        EXPECT_DOUBLE_EQ(scaled[i][k], factor * once[i][k]);
    }
  };
  expect_times(1, true);
  expect_times(3, true);
  expect_times(0, true);
  expect_times(0.5, false);
}

// Nothing near the size of all logits is ever allocated.
TEST(LinearCrossEntropy, NeverHoldsAllLogits) {
  constexpr int64_t kRows = 8000, kClasses = 2000;
  Layer layer = Layer::of<float>(kRows, 8, kClasses, false);
  const Tensor targets = some_targets({kRows}, kClasses);
  reset_peak_memory();
  const int64_t before = memory_figures().peak;
  linear_cross_entropy(layer.x, layer.weight, layer.bias, targets, {.ignore_index = kIgnored})
      .mean()
      .backward();
  EXPECT_LT(memory_figures().peak - before, kRows * kClasses * 4 / 4);
}

TEST(LinearCrossEntropy, LossIsTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<double> first;
  const Layer layer = Layer::of<double>(1500, 5, 77, true);
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    const Loss loss = linear_cross_entropy(layer.x, layer.weight, layer.bias,
                                           some_targets({1500}, 77), {.ignore_index = kIgnored});
    if (count == 1) first = loss.sum.values<double>();
    EXPECT_EQ(loss.sum.values<double>(), first);
  }
  set_threads(before);
}

TEST(LinearCrossEntropy, ImpossibleTargetsAndBadInputsAreSeen) {
  const auto loss_of = [](const Tensor& x, const Tensor& bias) {
    return linear_cross_entropy(x, Tensor::of<float>({2, 1}, {1, -1}), bias,
                                Tensor::of<int32_t>({1}, {0}))
        .sum.item();
  };
  const Tensor x = Tensor::of<float>({1, 1}, {0});
  EXPECT_NEAR(loss_of(x, Tensor()), 0.69314718, 1e-7);
  EXPECT_EQ(loss_of(x, Tensor::of<float>({2}, {-INFINITY, 0})), INFINITY);
  EXPECT_TRUE(std::isnan(loss_of(Tensor::of<float>({1, 1}, {NAN}), Tensor())));
  // A class that nothing can choose gets no gradient, nor does a row without any class.
  Tensor bias = Tensor::of<float>({2}, {-INFINITY, -INFINITY});
  bias.set_needs_grad();
  linear_cross_entropy(x, Tensor::of<float>({2, 1}, {1, -1}), bias, Tensor::of<int32_t>({1}, {0}))
      .sum.backward();
  EXPECT_EQ(bias.gradient().values<float>(), (std::vector<float>{0, 0}));
}

TEST(LinearCrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32)), weight(Array::zeros({4, 3}, kFloat32));
  const Tensor targets = Tensor::of<int32_t>({2}, {0, 3});
  const auto error = [&](const Tensor& x, const Tensor& weight, const Tensor& bias,
                         const Tensor& targets, const CrossEntropyOptions& options = {}) {
    return error_of([&] { linear_cross_entropy(x, weight, bias, targets, options); });
  };
  EXPECT_EQ(error(x, Tensor(Array::zeros({4}, kFloat32)), Tensor(), targets),
            "linear_cross_entropy: the weight must be (out, in) in float32 or float64, got [4] "
            "float32");
  EXPECT_EQ(error(x, Tensor(Array::zeros({4, 2}, kFloat32)), Tensor(), targets),
            "linear_cross_entropy: the last size of the input must be 2, got [2, 3]; weights are "
            "(out, in), here [4, 2]");
  EXPECT_EQ(error(x, Tensor(Array::zeros({4, 3}, kFloat64)), Tensor(), targets),
            "linear_cross_entropy: input is float32 on cpu, weight float64 on cpu; convert one");
  EXPECT_EQ(error(x, weight, Tensor(Array::zeros({3}, kFloat32)), targets),
            "linear_cross_entropy: the bias must be [4] float32 on cpu, got [3] float32 on cpu");
  EXPECT_EQ(error(x, weight, Tensor(), Tensor::of<int32_t>({3}, {0, 0, 0})),
            "linear_cross_entropy: targets must have the shape of the input without the last "
            "dimension, got [3] and input [2, 3]");
  EXPECT_EQ(error(x, weight, Tensor(), Tensor(Array::zeros({2}, kFloat32))),
            "linear_cross_entropy: targets must be int32, got float32; cast them");
  EXPECT_EQ(error(x, weight, Tensor(), Tensor::of<int32_t>({2}, {0, 4})),
            "linear_cross_entropy: target 4 at position 1 is outside 0..3");
  EXPECT_EQ(error(x, weight, Tensor(), targets, {.label_smoothing = -0.1}),
            "linear_cross_entropy: label_smoothing must be in [0, 1], got -0.1");
}

}  // namespace
}  // namespace gs
