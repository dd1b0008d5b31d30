#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/instruction_sets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/backend/vector_math_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

template <class Function>
void map(float* values, int64_t count, Function function) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d)))
    hwy::HWY_NAMESPACE::StoreU(function(d, hwy::HWY_NAMESPACE::LoadU(d, values + i)), d,
                               values + i);
}

void exp_all(float* values, int64_t count) {
  map(values, count, [](auto d, auto x) HWY_ATTR { return exp(d, x); });
}
void log_all(float* values, int64_t count) {
  map(values, count, [](auto d, auto x) HWY_ATTR { return log(d, x); });
}
void tanh_all(float* values, int64_t count) {
  map(values, count, [](auto d, auto x) HWY_ATTR { return tanh(d, x); });
}
void sigmoid_all(float* values, int64_t count) {
  map(values, count, [](auto d, auto x) HWY_ATTR { return sigmoid(d, x); });
}
void normal_all(float* values, int64_t count) {
  map(values, count, [](auto d, auto x) HWY_ATTR { return normal_share(d, x); });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(exp_all);
HWY_EXPORT(log_all);
HWY_EXPORT(tanh_all);
HWY_EXPORT(sigmoid_all);
HWY_EXPORT(normal_all);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Function>
std::vector<float> map_all(Function function, std::vector<float> x) {
  const size_t count = x.size();
  x.resize((count + 15) / 16 * 16);
  function(x.data(), static_cast<int64_t>(x.size()));
  x.resize(count);
  return x;
}
std::vector<float> exp_of(std::vector<float> x) {
  return map_all(HWY_DYNAMIC_DISPATCH(exp_all), std::move(x));
}
std::vector<float> log_of(std::vector<float> x) {
  return map_all(HWY_DYNAMIC_DISPATCH(log_all), std::move(x));
}
std::vector<float> tanh_of(std::vector<float> x) {
  return map_all(HWY_DYNAMIC_DISPATCH(tanh_all), std::move(x));
}
std::vector<float> sigmoid_of(std::vector<float> x) {
  return map_all(HWY_DYNAMIC_DISPATCH(sigmoid_all), std::move(x));
}
std::vector<float> normal_of(std::vector<float> x) {
  return map_all(HWY_DYNAMIC_DISPATCH(normal_all), std::move(x));
}

// One unit in the last place of a float of that size; 2^-149 at the least.
double unit_of(double value) { return std::max(std::ldexp(1.0, std::ilogb(value) - 23), 0x1p-149); }

// From -limit to limit in steps, and geometrically towards 0 and the ends of the range.
std::vector<float> signed_numbers(double limit, double step) {
  std::vector<float> x;
  for (double value = -limit; value < limit; value += step) x.push_back(static_cast<float>(value));
  for (double value = 1e-44; value < 3e38; value *= 1.13) {
    x.push_back(static_cast<float>(value));
    x.push_back(static_cast<float>(-value));
  }
  return x;
}

TEST(VectorMath, ExpIsAccurateOverItsWholeRange) {
  std::vector<float> x;
  for (double value = -110; value < 90; value += 0.00037) x.push_back(static_cast<float>(value));
  for (double value = 1e-30; value < 1; value *= 1.5) {
    x.push_back(static_cast<float>(value));
    x.push_back(static_cast<float>(-value));
  }
  test::for_each_instruction_set([&] {
    const std::vector<float> y = exp_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      if (expected > 3.4028235e38) {
        ASSERT_TRUE(y[i] > 3.40282e38f) << x[i];
        continue;
      }
      ASSERT_NEAR(y[i], expected, 2 * unit_of(expected)) << x[i];
    }
  });
}

TEST(VectorMath, ExpOfSpecialValues) {
  test::for_each_instruction_set([&] {
    const std::vector<float> y = exp_of(
        {0, -0.0f, kInfinity, -kInfinity, NAN, 88.7228f, 3e38f, -3e38f, -104, -1000, 1000, -NAN});
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], kInfinity);
    EXPECT_EQ(y[3], 0);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_TRUE(std::isfinite(y[5]) && y[5] > 3.4e38f);
    EXPECT_EQ(y[6], kInfinity);
    EXPECT_EQ(y[7], 0);
    EXPECT_EQ(y[8], 0);
    EXPECT_EQ(y[9], 0);
    EXPECT_EQ(y[10], kInfinity);
    EXPECT_TRUE(std::isnan(y[11]));
  });
}

// A vector whose lanes are all moderate takes a shorter way: its results must be the same.
TEST(VectorMath, ExpOfALaneDoesNotDependOnItsNeighbours) {
  test::for_each_instruction_set([&] {
    for (float value = -88; value < 88; value += 0.37f) {
      const std::vector<float> alone = exp_of(std::vector<float>(16, value));
      for (const float far : {-100.0f, 100.0f, kInfinity, -kInfinity, NAN}) {
        std::vector<float> mixed(16, far);
        mixed[5] = value;
        EXPECT_EQ(exp_of(mixed)[5], alone[5]) << value << " beside " << far;
      }
    }
  });
}

TEST(VectorMath, LogIsAccurateOverItsWholeRange) {
  std::vector<float> x;
  for (double value = 1e-45; value < 3.4e38; value *= 1.00021)
    x.push_back(static_cast<float>(value));
  for (double value = 0.5; value < 2; value += 0.000013) x.push_back(static_cast<float>(value));
  test::for_each_instruction_set([&] {
    const std::vector<float> y = log_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::log(static_cast<double>(x[i]));
      ASSERT_NEAR(y[i], expected, 2 * unit_of(expected)) << x[i];
    }
  });
}

TEST(VectorMath, LogOfSpecialValues) {
  test::for_each_instruction_set([&] {
    const std::vector<float> y =
        log_of({0, -0.0f, 1, kInfinity, -kInfinity, NAN, -1, -1e-42f, -NAN, 0x1p-149f});
    EXPECT_EQ(y[0], -kInfinity);
    EXPECT_EQ(y[1], -kInfinity);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], kInfinity);
    for (const size_t i : {4u, 5u, 6u, 7u, 8u}) EXPECT_TRUE(std::isnan(y[i])) << i;
    EXPECT_FLOAT_EQ(y[9], -103.27893f);
  });
}

TEST(VectorMath, TanhIsAccurateEverywhere) {
  const std::vector<float> x = signed_numbers(10, 0.00011);
  test::for_each_instruction_set([&] {
    const std::vector<float> y = tanh_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::tanh(static_cast<double>(x[i]));
      ASSERT_NEAR(y[i], expected, 3 * unit_of(expected)) << x[i];
    }
  });
}

TEST(VectorMath, SigmoidIsAccurateEverywhere) {
  const std::vector<float> x = signed_numbers(87, 0.00071);
  test::for_each_instruction_set([&] {
    const std::vector<float> y = sigmoid_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      if (x[i] < -87) {
        ASSERT_NEAR(y[i], expected, 1.2e-38) << x[i];
      } else {
        ASSERT_NEAR(y[i], expected, 4 * unit_of(expected)) << x[i];
      }
    }
  });
}

TEST(VectorMath, NormalShareIsAccurateEverywhere) {
  const std::vector<float> x = signed_numbers(9, 0.00011);
  test::for_each_instruction_set([&] {
    const std::vector<float> y = normal_of(x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = 0.5 * std::erfc(-static_cast<double>(x[i]) / std::sqrt(2.0));
      ASSERT_NEAR(y[i], expected, 1.5e-7) << x[i];
      ASSERT_NEAR(y[i] * x[i], expected * static_cast<double>(x[i]), 4e-7 * (1 + std::abs(x[i])))
          << x[i];
    }
  });
}

TEST(VectorMath, BoundedFunctionsOfSpecialValues) {
  test::for_each_instruction_set([&] {
    // The last is a NaN with a payload.
    const std::vector<float> x{
        0, -0.0f, kInfinity, -kInfinity, NAN, -NAN, std::bit_cast<float>(0x7fc12345)};
    for (const auto& [y, lower, middle] :
         {std::tuple{tanh_of(x), -1.0f, 0.0f}, std::tuple{normal_of(x), 0.0f, 0.5f},
          std::tuple{sigmoid_of(x), 0.0f, 0.5f}}) {
      EXPECT_EQ(y[0], middle);
      EXPECT_EQ(y[1], middle);
      EXPECT_EQ(std::signbit(y[1]), lower < 0);  // odd functions keep the sign of zero
      EXPECT_EQ(y[2], 1);
      EXPECT_EQ(y[3], lower);
      EXPECT_TRUE(std::isnan(y[4]));
      EXPECT_TRUE(std::isnan(y[5]));
      EXPECT_TRUE(std::isnan(y[6]));
    }
  });
}

}  // namespace
}  // namespace gs::backend
#endif
