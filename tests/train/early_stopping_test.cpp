#include "framework/train/early_stopping.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/support.h"

namespace gs {
namespace {

TEST(EarlyStopping, StopsAfterSoManyWithoutABetterOne) {
  for (const bool lower : {true, false}) {
    const double sign = lower ? 1 : -1;
    EarlyStopping stopping(2, lower);
    EXPECT_FALSE(stopping.should_stop());
    EXPECT_FALSE(stopping.best().has_value());
    const double metrics[] = {5, 6, 4, 4, 3, 3.5, std::numeric_limits<double>::quiet_NaN()};
    const int64_t since_best[] = {0, 1, 0, 1, 0, 1, 2};
    for (int i = 0; i < 7; ++i) {
      EXPECT_FALSE(stopping.should_stop()) << i;
      stopping.add(sign * metrics[i]);
      EXPECT_EQ(stopping.since_best(), since_best[i]) << i;
    }
    EXPECT_TRUE(stopping.should_stop());
    EXPECT_EQ(stopping.best(), sign * 3);
    stopping.add(sign * 1);
    EXPECT_FALSE(stopping.should_stop());
  }
}

TEST(EarlyStopping, NeverStopsWithoutPatience) {
  EarlyStopping stopping(0, true);
  for (int i = 0; i < 100; ++i) stopping.add(i);
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_EQ(stopping.since_best(), 99);
}

TEST(EarlyStopping, NaNAloneIsNeverTheBest) {
  EarlyStopping stopping(2, false);
  stopping.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(stopping.should_stop());
  stopping.add(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(stopping.should_stop());
  EXPECT_FALSE(stopping.best().has_value());
}

TEST(EarlyStopping, GoesOnFromItsState) {
  EarlyStopping before(3, true);
  for (const double metric : {2.0, 1.0, 1.5, 1.25}) before.add(metric);
  EarlyStopping after(3, true);
  after.restore(before.best(), before.since_best());
  EXPECT_FALSE(after.should_stop());
  after.add(1.0);  // no better than before the break
  EXPECT_TRUE(after.should_stop());
  EarlyStopping longer(4, true);
  longer.restore(after.best(), after.since_best());
  EXPECT_FALSE(longer.should_stop());
}

TEST(EarlyStopping, RefusesNegativeNumbers) {
  EXPECT_EQ(test::error_of([] { EarlyStopping(-1, true); }),
            "early stopping: the patience must not be negative, got -1");
  EarlyStopping stopping(1, true);
  EXPECT_EQ(test::error_of([&] { stopping.restore({}, -2); }),
            "early stopping: the count since the best must not be negative, got -2");
}

}  // namespace
}  // namespace gs
