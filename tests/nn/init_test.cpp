#include "framework/nn/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, largest = 0, neighbours = 0;
};

Moments moments_of(const Tensor& tensor) {
  const std::vector<double> values = tensor.values<double>();
  const double count = static_cast<double>(values.size());
  Moments m;
  for (const double x : values) m.mean += x / count;
  double previous = 0, fourth = 0;
  for (const double x : values) {
    const double centred = x - m.mean;
    m.variance += centred * centred / count;
    fourth += std::pow(centred, 4) / count;
    m.neighbours += centred * previous / count;
    m.largest = std::max(m.largest, std::abs(x));
    previous = centred;
  }
  m.kurtosis = fourth / (m.variance * m.variance);
  m.neighbours /= m.variance;
  return m;
}

// 60000 numbers: the deviation of the mean is 0.4 %, of the variance 0.4 % (uniform) or 0.6 %
// (normal) of the expected one, of the kurtosis 0.02, of the correlation 0.004.
void expect_uniform(const Tensor& tensor, double bound) {
  const Moments m = moments_of(tensor);
  EXPECT_LE(m.largest, bound * (1 + 1e-6));
  EXPECT_GT(m.largest, bound * 0.999);
  EXPECT_NEAR(m.mean, 0, 0.02 * bound);
  EXPECT_NEAR(m.variance, bound * bound / 3, 0.02 * bound * bound / 3);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.03);
  EXPECT_NEAR(m.neighbours, 0, 0.02);
  EXPECT_EQ(tensor.dtype(), kFloat32);
  EXPECT_FALSE(tensor.needs_grad());
}

void expect_normal(const Tensor& tensor, double mean, double variance) {
  const Moments m = moments_of(tensor);
  EXPECT_NEAR(m.mean, mean, 0.02 * std::sqrt(variance));
  EXPECT_NEAR(m.variance, variance, 0.03 * variance);
  EXPECT_NEAR(m.kurtosis, 3, 0.12);
  EXPECT_GT(m.largest, 3.5 * std::sqrt(variance));
  EXPECT_NEAR(m.neighbours, 0, 0.02);
  EXPECT_EQ(tensor.dtype(), kFloat32);
}

constexpr auto kShape = {int64_t{200}, int64_t{300}};  // out, in

TEST(Init, XavierSpreadsOverBothFans) {
  Generator generator(1);
  expect_uniform(nn::xavier_uniform(kShape, generator), 0.10954451150103323);  // sqrt(6 / 500)
  expect_normal(nn::xavier_normal(kShape, generator), 0, 0.004);               // 2 / 500
}

TEST(Init, KaimingSpreadsOverTheFanIn) {
  Generator generator(2);
  expect_uniform(nn::kaiming_uniform(kShape, generator), 0.1414213562373095);  // sqrt(6 / 300)
  expect_normal(nn::kaiming_normal(kShape, generator), 0, 1.0 / 150);
}

// Kernels (out, in, 2, 3): both fans count the inner sizes. fan in 150, fan out 2400.
TEST(Init, InnerSizesCountTowardsBothFans) {
  Generator generator(3);
  const Shape shape{400, 25, 2, 3};
  expect_uniform(nn::xavier_uniform(shape, generator), std::sqrt(6.0 / 2550));
  expect_uniform(nn::kaiming_uniform(shape, generator), 0.2);
}

TEST(Init, UniformAndNormalKeepTheirNumbers) {
  Generator generator(4);
  expect_normal(nn::normal({60000}, 3, 0.5, generator), 3, 0.25);
  const std::vector<double> values = nn::uniform({60000}, 5, 7, generator).values<double>();
  EXPECT_THAT(values, testing::Each(testing::AllOf(testing::Ge(5), testing::Le(7))));
  EXPECT_LT(*std::min_element(values.begin(), values.end()), 5.01);
  EXPECT_GT(*std::max_element(values.begin(), values.end()), 6.99);
  EXPECT_THAT(nn::normal({100}, 2, 0, generator).values<float>(), testing::Each(2));
  EXPECT_THAT(nn::uniform({100}, 2, 2, generator).values<float>(), testing::Each(2));
  EXPECT_EQ(nn::constant({2, 2}, 0.5).values<float>(), std::vector<float>(4, 0.5f));
}

TEST(Init, IsToldByTheSeedAndByTheNumberOfDraws) {
  Generator first(7), second(7);
  const Tensor a = nn::xavier_uniform({3, 5}, first), b = nn::xavier_uniform({3, 5}, second);
  EXPECT_EQ(a.values<float>(), b.values<float>());
  EXPECT_NE(nn::xavier_uniform({3, 5}, first).values<float>(), a.values<float>());
  EXPECT_EQ(first.state().next_stream, 2u);
  Generator other(8);
  EXPECT_NE(nn::xavier_uniform({3, 5}, other).values<float>(), a.values<float>());
  set_seed(7);
  EXPECT_EQ(nn::xavier_uniform({3, 5}).values<float>(), a.values<float>());
  // One stream a call, however many numbers: what comes later does not depend on the sizes.
  Generator large(7);
  nn::normal({1000}, 0, 1, large);
  EXPECT_EQ(large.state().next_stream, 1u);
}

TEST(Init, TakesEmptyShapesAndRefusesNonsense) {
  Generator generator(9);
  EXPECT_EQ(nn::xavier_uniform({0, 0}, generator).shape(), Shape({0, 0}));
  EXPECT_EQ(nn::kaiming_normal({3, 0}, generator).elements(), 0);
  EXPECT_EQ(nn::kaiming_uniform({0, 3}, generator).elements(), 0);
  EXPECT_EQ(error_of([&] { nn::xavier_uniform({3}, generator); }),
            "initialiser: fans need at least two dimensions, got [3]; use uniform or normal");
  EXPECT_EQ(error_of([&] { nn::kaiming_normal({}, generator); }),
            "initialiser: fans need at least two dimensions, got []; use uniform or normal");
  EXPECT_EQ(error_of([&] { nn::uniform({3}, 1, -1, generator); }),
            "uniform: needs low <= high, got 1 and -1");
  EXPECT_NE(error_of([&] { nn::uniform({3}, NAN, 1, generator); }), "");
  EXPECT_EQ(error_of([&] { nn::normal({3}, 0, -1, generator); }),
            "normal: needs a deviation of at least 0, got -1");
  EXPECT_NE(error_of([&] { nn::normal({3}, 0, NAN, generator); }), "");
}

TEST(Init, NothingIsDrawnForValuesThatAreLoadedNext) {
  Generator generator(1), untouched(1);
  {
    const nn::NoInitialValues outer;
    {
      const nn::NoInitialValues inner;
      EXPECT_EQ(nn::normal({3, 2}, 0, 1, generator).shape(), Shape({3, 2}));
    }
    EXPECT_EQ(nn::xavier_uniform({3, 2}, generator).dtype(), kFloat32);
    EXPECT_EQ(nn::constant({2}, 7).values<float>(), std::vector<float>(2, 7));
  }
  EXPECT_EQ(nn::normal({5}, 0, 1, generator).values<float>(),
            nn::normal({5}, 0, 1, untouched).values<float>());
}

}  // namespace
}  // namespace gs
