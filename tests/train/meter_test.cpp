#include "framework/train/meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/support.h"

namespace gs {
namespace {

// pytorch/torchtitan#4167, keras-team/keras-hub#2958, ml-explore/mlx-lm#1855: the mean of the
// batches' means, 6.0, gave 403.43.
TEST(MeanMeter, PerplexityIsPerToken) {
  MeanMeter meter;
  meter.add(2, 1);
  meter.add(90, 9);
  EXPECT_EQ(meter.mean(), 9.2);
  EXPECT_NEAR(meter.perplexity(), 9897.129058743909, 1e-8);
  MeanMeter other;
  for (int i = 0; i < 10; ++i) other.add(i == 0 ? 2 : 10, 1);
  EXPECT_EQ(other.perplexity(), meter.perplexity());
  EXPECT_EQ(other.count(), 10);
  EXPECT_EQ(other.sum(), 92);
}

TEST(MeanMeter, NothingCountedIsNoMean) {
  MeanMeter meter;
  EXPECT_TRUE(std::isnan(meter.mean()));
  meter.add(0, 0);
  EXPECT_TRUE(std::isnan(meter.perplexity()));
  meter.add(3, 2);
  meter.reset();
  EXPECT_EQ(meter.count(), 0);
  EXPECT_EQ(test::error_of([&] { meter.add(1, -1); }),
            "mean meter: negative count, got -1; use 0 or more");
}

RateMeter::Clock::time_point at(double seconds) {
  return RateMeter::Clock::time_point(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

TEST(RateMeter, ForgetsWhatIsOlderThanTheWindow) {
  RateMeter meter(2, at(0));
  EXPECT_EQ(meter.per_second(), 0);
  meter.add(100, at(1));
  EXPECT_EQ(meter.per_second(), 100);
  meter.add(300, at(2));
  EXPECT_EQ(meter.per_second(), 200);
  meter.add(300, at(3));  // the window is 1 to 3
  EXPECT_EQ(meter.per_second(), 300);
  meter.add(300, at(10));  // one step longer than the window
  EXPECT_EQ(meter.per_second(), 300.0 / 7);
}

TEST(RateMeter, RestartLeavesOutAPause) {
  RateMeter meter(5, at(0));
  meter.add(100, at(1));
  meter.restart(at(100));
  EXPECT_EQ(meter.per_second(), 0);
  meter.add(50, at(101));
  EXPECT_EQ(meter.per_second(), 50);
}

TEST(RateMeter, NoTimeIsNoRate) {
  RateMeter meter(5, at(1));
  meter.add(100, at(1));
  EXPECT_EQ(meter.per_second(), 0);
  EXPECT_EQ(test::error_of([] { RateMeter(0); }),
            "rate meter: window of 0 seconds; use a positive one");
}

}  // namespace
}  // namespace gs
