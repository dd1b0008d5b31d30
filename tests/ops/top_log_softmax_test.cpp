#include "framework/ops/top_log_softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/ops/cast.h"
#include "framework/ops/linear.h"
#include "framework/ops/permute.h"
#include "framework/ops/softmax.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

constexpr float kInf = INFINITY, kNaN = NAN;

// The whole log_softmax, sorted.
template <typename T>
void expect_reference(const Tensor& x, int64_t count) {
  const TopLogSoftmax top = top_log_softmax(x, count);
  const int64_t width = x.size(1), kept = std::min(count, width);
  ASSERT_EQ(top.log_probabilities.shape(), Shape({x.size(0), kept}));
  ASSERT_EQ(top.classes.shape(), Shape({x.size(0), kept}));
  const std::vector<T> logits = x.values<T>(), all = log_softmax(x).template values<T>();
  const std::vector<T> values = top.log_probabilities.values<T>();
  const std::vector<int32_t> classes = top.classes.values<int32_t>();
  for (int64_t row = 0; row < x.size(0); ++row) {
    const auto at = [&](int64_t i) { return static_cast<size_t>(row * width + i); };
    std::vector<int32_t> order(static_cast<size_t>(width));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return logits[at(a)] > logits[at(b)]; });
    for (int64_t i = 0; i < kept; ++i) {
      const auto place = static_cast<size_t>(row * kept + i);
      const int32_t expected = order[static_cast<size_t>(i)];
      ASSERT_EQ(classes[place], expected) << "row " << row << ", place " << i;
      ASSERT_EQ(values[place], all[at(expected)]);  // the same sums: the same bits
    }
  }
}

TEST(TopLogSoftmax, IsTheBeginningOfTheSortedLogSoftmax) {
  test::for_each_instruction_set([] {
    for (const int64_t width : {1, 2, 15, 16, 17, 127, 128, 129, 300, 1031, 6449}) {
      for (const int64_t count : {1, 2, 7, 12, 200, 7000}) {
        expect_reference<float>(random_tensor<float>({5, width}, 1), count);
        expect_reference<double>(random_tensor<double>({2, width}, 2), count);
      }
    }
  });
}

// Coarse values, so that many are equal, and rows in any order.
TEST(TopLogSoftmax, EqualLogitsComeByTheirNumber) {
  std::vector<float> values;
  for (int i = 0; i < 3 * 1000; ++i) values.push_back(static_cast<float>(i * 7919 % 31 / 5));
  for (int i = 0; i < 1000; ++i) values.push_back(3);
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i));
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(-i));
  for (const int64_t count : {1, 8, 9, 12, 999, 1000})
    expect_reference<float>(Tensor::of<float>({6, 1000}, values), count);
}

TEST(TopLogSoftmax, MinusInfinityIsImpossibleAndNeverNaN) {
  std::vector<float> values(2 * 300, -kInf);
  values[17] = 1;
  values[290] = 1;
  const TopLogSoftmax top = top_log_softmax(Tensor::of<float>({2, 300}, values), 4);
  const std::vector<float> found = top.log_probabilities.values<float>();
  EXPECT_NEAR(found[0], -std::log(2.0), 1e-6);
  EXPECT_EQ(found[0], found[1]);
  for (size_t i = 2; i < 8; ++i) EXPECT_EQ(found[i], -kInf);
  EXPECT_EQ(top.classes.values<int32_t>(), (std::vector<int32_t>{17, 290, 0, 1, 0, 1, 2, 3}));
}

// A NaN must not be passed over by the comparisons that look for the largest.
TEST(TopLogSoftmax, NaNAndInfinityMakeTheRowNaN) {
  test::for_each_instruction_set([] {
    for (const float bad : {kNaN, kInf}) {
      for (const size_t place : {0, 5, 127, 128, 299}) {
        std::vector<float> values(3 * 300, -1);
        values[300 + place] = bad;
        const TopLogSoftmax top = top_log_softmax(Tensor::of<float>({3, 300}, values), 3);
        const std::vector<float> found = top.log_probabilities.values<float>();
        for (size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(found[i]), i / 3 == 1) << place;
        const std::vector<int32_t> classes = top.classes.values<int32_t>();
        EXPECT_EQ(std::vector<int32_t>(classes.begin() + 3, classes.begin() + 6),
                  (std::vector<int32_t>{0, 1, 2}));
      }
    }
  });
}

TEST(TopLogSoftmax, TakesNoRowsAndNoClasses) {
  EXPECT_EQ(top_log_softmax(Tensor::of<float>({0, 5}, {}), 2).classes.shape(), Shape({0, 2}));
  EXPECT_EQ(top_log_softmax(Tensor::of<float>({3, 0}, {}), 2).classes.shape(), Shape({3, 0}));
}

TEST(TopLogSoftmax, RefusesWhatItCannotDo) {
  const Tensor x = random_tensor<float>({2, 3}, 1);
  EXPECT_EQ(error_of([&] { top_log_softmax(x, 0); }),
            "top_log_softmax: at least 1 class is wanted, got 0");
  EXPECT_EQ(error_of([] { top_log_softmax(Tensor(), 1); }),
            "top_log_softmax: got an undefined tensor; give it values first");
  EXPECT_EQ(error_of([] { top_log_softmax(random_tensor<float>({3}, 1), 1); }),
            "top_log_softmax: needs logits (R, V), got [3]");
  EXPECT_EQ(error_of([] {
              top_log_softmax(Tensor::of<int32_t>({1, 1}, {1}), 1);
            }),
            "top_log_softmax: needs float32 or float64, got int32; cast it first");
  Tensor y = random_tensor<float>({2, 3}, 1);
  y.set_needs_grad();
  EXPECT_EQ(error_of([&] { top_log_softmax(y, 1); }),
            "top_log_softmax: has no gradient, and an input needs one; detach it first");
  const NoGrad no_grad;
  EXPECT_EQ(top_log_softmax(y, 1).classes.shape(), Shape({2, 1}));
}

// The composed form; products in other blocks may differ in the last digits.
TEST(LinearTopLogSoftmax, AgreesWithTheProductAndItsTop) {
  for (const int64_t rows : {0, 1, 5, 23, 24, 25, 100}) {
    for (const int64_t classes : {1, 17, 1031}) {
      for (const bool with_bias : {false, true}) {
        const Tensor x = random_tensor<double>({rows, 19}, 1);
        const Tensor weight = random_tensor<double>({classes, 19}, 2);
        const Tensor bias = with_bias ? random_tensor<double>({classes}, 3) : Tensor();
        const TopLogSoftmax expected = top_log_softmax(linear(x, weight, bias), 6);
        const Tensor transposed = permute(weight, {1, 0});
        const TopLogSoftmax actual = linear_top_log_softmax(x, transposed, bias, 6);
        EXPECT_EQ(actual.classes.values<int32_t>(), expected.classes.values<int32_t>());
        expect_near(actual.log_probabilities, expected.log_probabilities.values<double>(), 1e-12);
        const TopLogSoftmax single =
            linear_top_log_softmax(cast(x, kFloat32), cast(transposed, kFloat32),
                                   with_bias ? cast(bias, kFloat32) : Tensor(), 6);
        expect_near(single.log_probabilities, expected.log_probabilities.values<double>(), 1e-5);
      }
    }
  }
}

TEST(LinearTopLogSoftmax, NaNMakesItsRowNaN) {
  std::vector<float> values(30 * 4, 1);
  values[25 * 4] = kNaN;
  const std::vector<float> found =
      linear_top_log_softmax(Tensor::of<float>({30, 4}, values), random_tensor<float>({4, 50}, 1),
                             Tensor(), 3)
          .log_probabilities.values<float>();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(std::isnan(found[i]), i / 3 == 25) << i;
}

TEST(LinearTopLogSoftmax, RefusesWhatDoesNotFit) {
  const Tensor x = random_tensor<float>({2, 3}, 1), weight = random_tensor<float>({3, 5}, 2);
  EXPECT_EQ(error_of([&] {
              linear_top_log_softmax(x, permute(weight, {1, 0}), Tensor(), 1);
            }),
            "linear_top_log_softmax: needs x (R, C) and a transposed weight (C, V), got [2, 3] and "
            "[5, 3]");
  EXPECT_EQ(error_of([&] { linear_top_log_softmax(x, weight, random_tensor<float>({3}, 1), 1); }),
            "linear_top_log_softmax: the bias must be [5], got [3]");
  EXPECT_EQ(error_of([&] { linear_top_log_softmax(x, weight, Tensor(), 0); }),
            "linear_top_log_softmax: at least 1 class is wanted, got 0");
  EXPECT_EQ(error_of([&] { linear_top_log_softmax(x, Tensor(), Tensor(), 1); }),
            "linear_top_log_softmax: got an undefined tensor; give it values first");
  Tensor learned = random_tensor<float>({3, 5}, 2);
  learned.set_needs_grad();
  EXPECT_EQ(error_of([&] { linear_top_log_softmax(x, learned, Tensor(), 1); }),
            "linear_top_log_softmax: has no gradient, and an input needs one; detach it first");
}

}  // namespace
}  // namespace gs
