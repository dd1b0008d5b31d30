#include "framework/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/parallel.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

constexpr float kInf = INFINITY;

Tensor targets_of(const Shape& shape, std::vector<int32_t> values) {
  return Tensor::of<int32_t>(shape, values);
}

double loss_of(const std::vector<float>& logits, int32_t target,
               const CrossEntropyOptions& options = {}) {
  const Tensor row = Tensor::of<float>({1, static_cast<int64_t>(logits.size())}, logits);
  return cross_entropy(row, targets_of({1}, {target}), options).sum.item();
}

// The definition in double precision: sums and gradient of the sum.
struct Reference {
  double loss = 0, nll = 0;
  std::vector<double> gradient;
};
Reference reference_of(const std::vector<double>& x, const std::vector<int32_t>& targets,
                       int32_t ignored, double smoothing) {
  Reference r;
  const size_t classes = x.size() / targets.size();
  for (size_t row = 0; row < targets.size(); ++row) {
    const double* const in = x.data() + row * classes;
    double sum = 0;
    for (size_t j = 0; j < classes; ++j) sum += std::exp(in[j]);
    for (size_t j = 0; j < classes; ++j) {
      const bool right = static_cast<int32_t>(j) == targets[row];
      const double q = (right ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
      const double log_p = in[j] - std::log(sum);
      r.gradient.push_back(targets[row] == ignored ? 0 : std::exp(log_p) - q);
      if (targets[row] == ignored) continue;
      r.loss -= q * log_p;
      if (right) r.nll -= log_p;
    }
  }
  return r;
}

template <typename T>
void expect_reference(int64_t rows, int64_t classes, double smoothing, double tolerance) {
  std::vector<int32_t> targets;
  for (int64_t i = 0; i < rows; ++i)
    targets.push_back(i % 4 == 1 ? -7 : static_cast<int32_t>(i * 5 % classes));
  Tensor logits = random_tensor<T>({rows, classes}, 1);
  const Reference expected = reference_of(logits.values<double>(), targets, -7, smoothing);
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({rows}, targets),
                                  {.ignore_index = -7, .label_smoothing = smoothing});
  EXPECT_EQ(loss.count, rows - (rows + 2) / 4);
  expect_near(loss.sum, {expected.loss}, tolerance);
  expect_near(loss.negative_log_likelihood_sum, {expected.nll}, tolerance);
  EXPECT_FALSE(loss.negative_log_likelihood_sum.needs_grad());
  loss.sum.backward();
  expect_near(logits.gradient(), expected.gradient, tolerance);
}

TEST(CrossEntropy, AgreesWithTheDefinition) {
  test::for_each_instruction_set([] {
    for (int64_t classes = 1; classes <= 37; ++classes) {
      expect_reference<float>(6, classes, classes % 2 * 0.1, 1e-6);
      expect_reference<double>(6, classes, classes % 2 * 0.1, 1e-14);
    }
    expect_reference<float>(130, 500, 0.1, 1e-6);
    expect_reference<float>(3, 10007, 0.1, 1e-6);
    expect_reference<double>(130, 500, 1, 1e-13);
  });
}

// pytorch/pytorch#70348, #75181, #116349: the mean of nothing was NaN.
TEST(CrossEntropy, AllTargetsIgnoredIsZero) {
  Tensor logits = Tensor::of<float>({1, 3}, {1, NAN, 3});
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({1}, {-100}), {.ignore_index = -100});
  EXPECT_EQ(loss.sum.item(), 0);
  EXPECT_EQ(loss.count, 0);
  EXPECT_EQ(loss.mean().item(), 0);
  loss.mean().backward();
  EXPECT_EQ(logits.gradient().values<float>(), std::vector<float>(3));
}

// pytorch/pytorch#12670, #15508: a target out of range was read out of bounds.
TEST(CrossEntropy, TargetsOutOfRangeAreRefused) {
  const Tensor logits(Array::zeros({3, 5}, kFloat32));
  EXPECT_EQ(error_of([&] {
              cross_entropy(logits, targets_of({3}, {1, 3, -4}), {.ignore_index = -1});
            }),
            "cross_entropy: target -4 at position 2 is outside 0..4 and not the ignored -1");
  EXPECT_EQ(error_of([&] {
              cross_entropy(logits, targets_of({3}, {0, 5, 2}));
            }),
            "cross_entropy: target 5 at position 1 is outside 0..4");
  EXPECT_EQ(error_of([&] {
              cross_entropy(logits, targets_of({3}, {0, 1, -1}));
            }),
            "cross_entropy: target -1 at position 2 is outside 0..4");
}

// pytorch/pytorch#73205, tinygrad/tinygrad#3570: ignored rows added their smoothed part.
TEST(CrossEntropy, IgnoredRowsAddNothingToTheSmoothedLoss) {
  Tensor logits = Tensor::of<double>({3, 3}, {1, 2, 3, 4, 1, 0, 0, 0, 0});
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({3}, {2, -1, 0}),
                                  {.ignore_index = -1, .label_smoothing = 0.1});
  EXPECT_NEAR(loss.sum.item(), 1.6062182531, 1e-10);
  EXPECT_EQ(loss.count, 2);
  EXPECT_NEAR(loss.mean().item(), 0.8031091266, 1e-10);
  loss.mean().backward();
  expect_near(logits.gradient(),
              {0.0283486199, 0.1056975689, -0.1340461888, 0, 0, 0, -0.3, 0.15, 0.15}, 1e-10);
}

// OpenNMT/OpenNMT#570: libraries spread epsilon over different classes; here over all V.
TEST(CrossEntropy, SmoothingSpreadsOverAllClasses) {
  const std::vector<float> logits{0, 1, 2, 3, 4};
  EXPECT_NEAR(loss_of(logits, 1, {.label_smoothing = 0.1}), 3.3519144, 1e-6);
  EXPECT_NEAR(loss_of(logits, 1), 3.4519144, 1e-6);
  const Loss loss = cross_entropy(Tensor::of<float>({5}, logits), targets_of({}, {1}),
                                  {.ignore_index = 0, .label_smoothing = 0.1});
  EXPECT_NEAR(loss.sum.item(), 3.3519144, 1e-6);
  EXPECT_NEAR(loss.negative_log_likelihood_sum.item(), 3.4519144, 1e-6);
}

// pytorch/pytorch#63004: ignoring selects rows, never classes.
TEST(CrossEntropy, IgnoredIndexStaysAClass) {
  const CrossEntropyOptions options{.ignore_index = 0};
  EXPECT_NEAR(loss_of({1, 1, 1}, 1, options), 1.0986122887, 1e-6);
  EXPECT_NEAR(loss_of({0, 1, 1}, 1, options), 0.8619948041, 1e-6);
  EXPECT_NEAR(loss_of({-kInf, 1, 1}, 1, options), 0.6931471806, 1e-6);
}

// tensorflow/docs#1460, PaddlePaddle/models#665: token losses 2 and 4, two of padding.
TEST(CrossEntropy, MeanIsOverTargetsThatCount) {
  std::vector<float> logits;
  for (const double loss : {2.0, 4.0, 1.0, 1.0})
    logits.insert(logits.end(), {0, static_cast<float>(std::log(std::expm1(loss)))});
  const Loss loss = cross_entropy(Tensor::of<float>({2, 2, 2}, logits),
                                  targets_of({2, 2}, {0, 0, 9, 9}), {.ignore_index = 9});
  EXPECT_NEAR(loss.mean().item(), 3, 1e-6);
}

// pytorch/torchtitan#4167, keras-team/keras-hub#2958: means of means change with the batches.
TEST(CrossEntropy, SumsAndCountsAddUpOverBatches) {
  const auto batch_of = [](int64_t rows, double loss) {
    std::vector<float> logits;
    for (int64_t i = 0; i < rows; ++i)
      logits.insert(logits.end(), {0, static_cast<float>(std::log(std::expm1(loss)))});
    return cross_entropy(Tensor::of<float>({rows, 2}, logits),
                         targets_of({rows}, std::vector<int32_t>(static_cast<size_t>(rows))));
  };
  const Loss small = batch_of(1, 2), large = batch_of(9, 10);
  const double mean =
      (small.sum.item() + large.sum.item()) / static_cast<double>(small.count + large.count);
  EXPECT_NEAR(std::exp(mean), 9897.129, 0.05);
}

TEST(CrossEntropy, BigLogitsKeepTheirDigits) {
  for (const float value : {1e4f, 1e8f, 1e20f, -1e20f})
    EXPECT_NEAR(loss_of({value, value}, 0), 0.69314718, 1e-7);
  EXPECT_EQ(loss_of({1000, 0}, 0), 0);
  EXPECT_EQ(loss_of({1000, 0}, 1), 1000);
  Tensor logits = Tensor::of<float>({1, 2}, {1e20f, 1e20f});
  logits.set_needs_grad();
  cross_entropy(logits, targets_of({1}, {0})).sum.backward();
  EXPECT_EQ(logits.gradient().values<float>(), (std::vector<float>{-0.5f, 0.5f}));
}

TEST(CrossEntropy, ImpossibleTargetsAndBadLogitsAreSeen) {
  EXPECT_EQ(loss_of({-kInf, 1}, 0), INFINITY);
  EXPECT_TRUE(std::isnan(loss_of({NAN, -kInf}, 1)));
  EXPECT_TRUE(std::isnan(loss_of({1, NAN}, 0)));
  const Tensor both = Tensor::of<float>({2, 2}, {1, NAN, -kInf, -kInf});
  EXPECT_TRUE(std::isnan(cross_entropy(both, targets_of({2}, {0, 0})).sum.item()));
  Tensor logits = Tensor::of<float>({2, 2}, {-kInf, -kInf, 0, 0});
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({2}, {0, 1}), {.label_smoothing = 0.1});
  EXPECT_EQ(loss.sum.item(), INFINITY);
  loss.sum.backward();
  expect_near(logits.gradient(), {0, 0, 0.45, -0.45}, 1e-7);
}

TEST(CrossEntropy, CountsRightPredictions) {
  const Tensor logits = Tensor::of<float>({5, 3}, {3, 1, 2,      // right
                                                   1, 1, 0,      // a tie goes to the first: wrong
                                                   1, 1, 0,      // right
                                                   0, 0, 9,      // ignored
                                                   5, 4, NAN});  // no prediction
  const Loss loss = cross_entropy(logits, targets_of({5}, {0, 1, 0, -1, 0}), {.ignore_index = -1});
  EXPECT_EQ(loss.correct, 2);
  EXPECT_EQ(loss.count, 4);
}

TEST(CrossEntropy, IsTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<double> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    const Loss loss = cross_entropy(random_tensor<double>({999, 77}, 1),
                                    targets_of({999}, std::vector<int32_t>(999, 5)));
    if (count == 1) first = loss.sum.values<double>();
    EXPECT_EQ(loss.sum.values<double>(), first);
  }
  set_threads(before);
}

TEST(CrossEntropy, PassesGradcheck) {
  const auto check_shape = [](const Shape& shape, const Tensor& targets, double smoothing) {
    const auto loss = [&](const std::vector<Tensor>& in) {
      return cross_entropy(in[0], targets, {.ignore_index = -1, .label_smoothing = smoothing})
          .mean();
    };
    const GradcheckResult result = gradcheck(loss, {random_tensor<double>(shape, 1)});
    EXPECT_TRUE(result.passed) << shape.text() << ": " << result.message;
  };
  for (const double smoothing : {0.0, 0.3, 1.0}) {
    check_shape({5}, targets_of({}, {3}), smoothing);
    check_shape({3, 7}, targets_of({3}, {6, -1, 0}), smoothing);
    check_shape({2, 2, 3}, targets_of({2, 2}, {0, 1, 2, -1}), smoothing);
    check_shape({2, 1}, targets_of({2}, {0, 0}), smoothing);
    check_shape({0, 4}, targets_of({0}, {}), smoothing);
    check_shape({2, 0}, targets_of({2}, {-1, -1}), smoothing);
  }
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const Tensor logits(Array::zeros({2, 3}, kFloat32)), targets = targets_of({2}, {0, 1});
  EXPECT_EQ(error_of([&] {
              cross_entropy(logits, targets_of({3}, {0, 1, 2}));
            }),
            "cross_entropy: targets must have the shape of the logits without the last dimension, "
            "got [3] and logits [2, 3]");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, Tensor(Array::zeros({2}, kFloat32))); }),
            "cross_entropy: targets must be int32, got float32; cast them");
  EXPECT_EQ(error_of([&] { cross_entropy(targets, targets); }),
            "cross_entropy: logits must be (..., V) in float32 or float64, got [2] int32");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, targets, {.label_smoothing = 1.5}); }),
            "cross_entropy: label_smoothing must be in [0, 1], got 1.5");
  EXPECT_EQ(error_of([&] { cross_entropy(logits, targets, {.label_smoothing = NAN}); }),
            "cross_entropy: label_smoothing must be in [0, 1], got nan");
}

// The gradient is computed together with the loss.
TEST(CrossEntropy, LaterChangesOfTheInputsDoNotMatter) {
  Tensor logits = Tensor::of<float>({1, 2}, {0, 0});
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({1}, {0}));
  logits.add_in_place(Tensor::of<float>({1, 2}, {5, 0}));
  loss.sum.backward();
  EXPECT_EQ(logits.gradient().values<float>(), (std::vector<float>{-0.5f, 0.5f}));
}

TEST(CrossEntropy, KeepsItsGradientWhileTheGraphIsRetained) {
  Tensor logits = Tensor::of<float>({1, 2}, {0, 0});
  logits.set_needs_grad();
  const Loss loss = cross_entropy(logits, targets_of({1}, {0}));
  const auto backward = [&](float upstream, bool retain_graph) {
    logits.clear_gradient();
    loss.sum.backward(Tensor::of<float>({}, {upstream}), {.retain_graph = retain_graph});
    EXPECT_EQ(logits.gradient().values<float>(),
              (std::vector<float>{-0.5f * upstream, 0.5f * upstream}));
  };
  for (const float upstream : {1, 3, 0, 1}) backward(upstream, true);
  backward(5, false);
  EXPECT_NE(error_of([&] { loss.sum.backward(); }).find("freed by an earlier"), std::string::npos);
}

}  // namespace
}  // namespace gs
