#include "tests/backend/cuda/both_devices.h"

#include <gtest/gtest-spi.h>

#include <limits>

namespace gs {
namespace {

void compare(double actual, double expected) {
  test::expect_near(Array::full({1}, actual, kFloat64), Array::full({1}, expected, kFloat64), 1e-5,
                    "number");
}

TEST(BothDevices, OnlyInfinityIsNearInfinity) {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  compare(kInfinity, kInfinity);
  compare(kNaN, kNaN);
  compare(1e6 + 1, 1e6);
  EXPECT_FATAL_FAILURE(compare(7, kInfinity), "number, element 0");
  EXPECT_FATAL_FAILURE(compare(kInfinity, -kInfinity), "number, element 0");
  EXPECT_FATAL_FAILURE(compare(kInfinity, 7), "number, element 0");
  EXPECT_FATAL_FAILURE(compare(kNaN, 7), "number, element 0");
  EXPECT_FATAL_FAILURE(compare(7, kNaN), "number, element 0");
  EXPECT_FATAL_FAILURE(compare(1e6 + 20, 1e6), "number, element 0");
}

}  // namespace
}  // namespace gs
