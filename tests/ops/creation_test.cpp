#include "framework/ops/creation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/parallel.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

TEST(Creation, FillsEveryType) {
  EXPECT_EQ(zeros({2, 2}).values<float>(), std::vector<float>(4, 0));
  EXPECT_EQ(ones({3}, {.dtype = kInt32}).values<int32_t>(), std::vector<int32_t>(3, 1));
  EXPECT_EQ(full({}, 2.5, {.dtype = kFloat64}).item(), 2.5);
  EXPECT_EQ(full({0, 3}, 1).shape(), Shape({0, 3}));
  const Tensor x = ones_like(full({2}, 7, {.dtype = kFloat64}));
  EXPECT_EQ(x.dtype(), kFloat64);
  EXPECT_EQ(x.values<double>(), (std::vector<double>{1, 1}));
  EXPECT_EQ(zeros_like(x).values<double>(), (std::vector<double>{0, 0}));
  EXPECT_FALSE(x.needs_grad());
  EXPECT_EQ(error_of([] { full({1}, 0.5, {.dtype = kInt32}); }), "full: int32 does not hold 0.5");
}

TEST(Creation, CountsWithoutDrift) {
  EXPECT_EQ(arange(4).values<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(arange(5, -2, -3).values<int32_t>(), (std::vector<int32_t>{5, 2, -1}));
  EXPECT_EQ(arange(0).elements(), 0);
  EXPECT_EQ(arange(3, 1).elements(), 0);
  const std::vector<double> tenths = arange(0, 1, 0.1, {.dtype = kFloat64}).values<double>();
  ASSERT_EQ(tenths.size(), 10u);
  EXPECT_EQ(tenths[9], 9 * 0.1);
  EXPECT_EQ(error_of([] { arange(0, 1, 0); }),
            "arange: needs finite numbers and a step other than 0, got 0 to 1 by 0");
  EXPECT_EQ(error_of([] { arange(0, 2, 0.5); }),
            "arange: int32 does not hold all of 0 to 2 by 0.5; ask for float32");
  EXPECT_EQ(error_of([] { arange(0, 1e10, 1e9); }),
            "arange: int32 does not hold all of 0 to 10000000000 by 1000000000; ask for float32");
  EXPECT_EQ(error_of([] { arange(-1); }), "arange: the count must not be negative, got -1");
  EXPECT_EQ(error_of([] { arange(0, INFINITY); }),
            "arange: needs finite numbers and a step other than 0, got 0 to inf by 1");
}

TEST(Creation, UniformNumbersAreTheWordsOfOneStream) {
  Generator generator(7);
  const std::vector<float> values = rand({6}, {}, generator).values<float>();
  const RandomStream stream{7, 0};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(values[i], unit_float(stream.words(i / 4)[i % 4]));
  EXPECT_EQ(generator.state(), (RandomState{7, 1}));
}

// Box-Muller by its definition.
TEST(Creation, NormalNumbersAreMadeOfPairsOfWords) {
  Generator generator(7);
  const std::vector<double> values = randn({7}, {.dtype = kFloat64}, generator).values<double>();
  const RandomStream stream{7, 0};
  for (size_t i = 0; i < 7; ++i) {
    const auto words = stream.words(i / 4);
    const double radius = std::sqrt(-2 * std::log((words[i % 4 / 2 * 2] + 1.0) / 4294967296.0));
    const double angle = 2 * M_PI * words[i % 4 / 2 * 2 + 1] / 4294967296.0;
    EXPECT_NEAR(values[i], radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)), 1e-14);
  }
}

TEST(Creation, RandomNumbersHaveTheirMoments) {
  Generator generator(1);
  const int64_t count = 200001;
  const std::vector<double> uniform = rand({count}, {}, generator).values<double>();
  const std::vector<double> normal = randn({count}, {}, generator).values<double>();
  double sum = 0, sum2 = 0, normal_sum = 0, normal_sum2 = 0, normal_sum4 = 0;
  for (size_t i = 0; i < uniform.size(); ++i) {
    ASSERT_GE(uniform[i], 0);
    ASSERT_LT(uniform[i], 1);
    sum += uniform[i];
    sum2 += uniform[i] * uniform[i];
    normal_sum += normal[i];
    normal_sum2 += normal[i] * normal[i];
    normal_sum4 += std::pow(normal[i], 4);
  }
  // Within five standard errors.
  const double n = static_cast<double>(count), error = 5 / std::sqrt(n);
  EXPECT_NEAR(sum / n, 0.5, 0.289 * error);
  EXPECT_NEAR(sum2 / n, 1.0 / 3, 0.299 * error);
  EXPECT_NEAR(normal_sum / n, 0, error);
  EXPECT_NEAR(normal_sum2 / n, 1, std::sqrt(2.0) * error);
  EXPECT_NEAR(normal_sum4 / n, 3, std::sqrt(96.0) * error);
}

TEST(Creation, RandomNumbersDoNotDependOnThreadsOrType) {
  const int before = threads();
  const auto draw = [](int count, DType dtype) {
    set_threads(count);
    Generator generator(3);
    std::vector<double> all = randn({50001}, {.dtype = dtype}, generator).values<double>();
    const std::vector<double> more = rand({50001}, {.dtype = dtype}, generator).values<double>();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<double> one = draw(1, kFloat32), three = draw(3, kFloat32),
                            wide = draw(2, kFloat64);
  set_threads(before);
  EXPECT_EQ(one, three);
  for (size_t i = 0; i < one.size(); ++i) ASSERT_EQ(static_cast<float>(wide[i]), one[i]);
}

TEST(Creation, IntegersReachBothEnds) {
  Generator generator(5);
  const std::vector<int32_t> values =
      randint(-2, 3, {1000}, Device::cpu(), generator).values<int32_t>();
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), -2);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 2);
  for (int32_t value = -2; value < 3; ++value)
    EXPECT_NEAR(std::count(values.begin(), values.end(), value), 200, 64);  // 5 deviations
  EXPECT_EQ(randint(INT32_MAX, int64_t{INT32_MAX} + 1, {1}).item(), INT32_MAX);
  EXPECT_EQ(error_of([] { randint(3, 3, {1}); }),
            "randint: needs low < high within int32, got 3 and 3");
  EXPECT_EQ(error_of([] { rand({1}, {.dtype = kInt32}); }),
            "rand: gives float32 or float64, got int32; cast the result");
}

TEST(Creation, DefaultGeneratorRestartsWithItsSeed) {
  set_seed(11);
  const std::vector<float> first = randn({5}).values<float>();
  EXPECT_NE(randn({5}).values<float>(), first);
  set_seed(11);
  EXPECT_EQ(randn({5}).values<float>(), first);
}

TEST(Creation, OneHot) {
  const Tensor indices = Tensor::of<int32_t>({2, 1}, {2, 0});
  const Tensor y = one_hot(indices, 3);
  EXPECT_EQ(y.shape(), Shape({2, 1, 3}));
  EXPECT_EQ(y.values<float>(), (std::vector<float>{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot(indices, 3, kBool).values<bool>(),
            (std::vector<bool>{false, false, true, true, false, false}));
  EXPECT_EQ(one_hot(zeros({0}, {.dtype = kInt32}), 3).shape(), Shape({0, 3}));
  EXPECT_EQ(error_of([&] { one_hot(indices, 2); }),
            "one_hot: index 2 at position 0 is outside 0..1");
  EXPECT_EQ(error_of([&] {
              one_hot(Tensor::of<int32_t>({2}, {0, -1}), 2);
            }),
            "one_hot: index -1 at position 1 is outside 0..1");
  EXPECT_EQ(error_of([] { one_hot(zeros({2}), 2); }),
            "one_hot: indices must be int32, got float32; cast them");
}

}  // namespace
}  // namespace gs
