#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

void exp_all(float* values, int64_t count) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> d;
  for (int64_t i = 0; i < count; i += static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d)))
    hwy::HWY_NAMESPACE::StoreU(exp(d, hwy::HWY_NAMESPACE::LoadU(d, values + i)), d, values + i);
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(exp_all);

std::vector<float> exp_of(std::vector<float> x) {
  const size_t count = x.size();
  x.resize((count + 15) / 16 * 16);
  HWY_DYNAMIC_DISPATCH(exp_all)(x.data(), static_cast<int64_t>(x.size()));
  x.resize(count);
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
      // Two units in the last place, which has 2^-149 at the least.
      const double unit = std::max(std::ldexp(1.0, std::ilogb(expected) - 23), 0x1p-149);
      ASSERT_NEAR(y[i], expected, 2 * unit) << x[i];
    }
  });
}

TEST(VectorMath, ExpOfSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
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

}  // namespace
}  // namespace gs::backend
#endif
