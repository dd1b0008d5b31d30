#include "framework/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/support.h"

namespace gs {
namespace {

using Kind = Schedule::Kind;

// huggingface/transformers#28835, espnet/espnet#2088: step 0, warm-up 0 and the published values.
TEST(Schedule, NoamCountsFromOne) {
  const Schedule schedule{.kind = Kind::kNoam, .peak = 1, .warmup = 4000, .width = 512};
  EXPECT_NEAR(schedule.rate(1), 1.746928107e-7, 1e-16);
  EXPECT_NEAR(schedule.rate(4000), 6.987712430e-4, 1e-13);
  EXPECT_NEAR(schedule.rate(4001), 6.986839129e-4, 1e-13);
  EXPECT_NEAR(schedule.rate(8000), 4.941058844e-4, 1e-13);
  EXPECT_EQ(schedule.rate(0), 0);
  EXPECT_NEAR((Schedule{.kind = Kind::kNoam, .peak = 1, .warmup = 4000, .width = 128}).rate(4000),
              1.397542486e-3, 1e-12);
  EXPECT_NEAR((Schedule{.kind = Kind::kNoam, .peak = 1, .warmup = 0, .width = 4}).rate(25), 0.1,
              1e-15);
}

TEST(Schedule, LinearAndCosineRiseAndFall) {
  for (const Kind kind : {Kind::kLinear, Kind::kCosine}) {
    const Schedule schedule{.kind = kind, .peak = 2, .warmup = 10, .total = 110};
    EXPECT_NEAR(schedule.rate(5), 1, 1e-15);
    EXPECT_NEAR(schedule.rate(10), 2, 1e-15);
    EXPECT_NEAR(schedule.rate(60), 1, 1e-12);
    EXPECT_NEAR(schedule.rate(110), 0, 1e-12);
    EXPECT_NEAR(schedule.rate(500), 0, 1e-12);
  }
  EXPECT_NEAR((Schedule{.kind = Kind::kLinear, .peak = 2, .warmup = 10, .total = 110}).rate(35),
              1.5, 1e-12);
  EXPECT_NEAR((Schedule{.kind = Kind::kCosine, .peak = 2, .warmup = 10, .total = 110}).rate(35),
              1 + std::sqrt(0.5), 1e-12);
}

TEST(Schedule, InverseSquareRootAndConstant) {
  const Schedule schedule{.kind = Kind::kInverseSquareRoot, .peak = 3, .warmup = 100};
  EXPECT_NEAR(schedule.rate(50), 1.5, 1e-12);
  EXPECT_NEAR(schedule.rate(100), 3, 1e-12);
  EXPECT_NEAR(schedule.rate(400), 1.5, 1e-12);
  EXPECT_EQ((Schedule{.peak = 3}).rate(7), 3);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  EXPECT_EQ((Schedule{.kind = Kind::kLinear, .peak = 3, .warmup = 10, .total = 10}).rate(20), 3);
  EXPECT_EQ(test::error_of([] { (void)Schedule{.warmup = -1}.rate(1); }),
            "schedule: steps must be at least 0, got step 1 and warm-up -1");
  EXPECT_EQ(
      test::error_of([] { Schedule::parse("step"); }),
      "schedule: unknown, got 'step'; use constant, linear, cosine, inverse_square_root or noam");
  EXPECT_EQ(Schedule::parse("noam"), Kind::kNoam);
}

}  // namespace
}  // namespace gs
