#include "framework/train/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

namespace gs {
namespace {

// Each in a process of its own, since the flag stays.
[[noreturn]] void stop_once(int number) {
  catch_interrupts();
  if (interrupted()) std::exit(1);
  raise(number);
  std::exit(interrupted() ? 0 : 1);
}

[[noreturn]] void stop_twice(int first, int second) {
  catch_interrupts();
  raise(first);
  raise(second);
  std::exit(1);
}

[[noreturn]] void stop_where_ignored() {
  signal(SIGINT, SIG_IGN);
  catch_interrupts();
  raise(SIGINT);
  raise(SIGINT);
  std::exit(interrupted() ? 1 : 0);
}

class InterruptDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InterruptDeathTest, TheFirstSetsTheFlag) {
  EXPECT_EXIT(stop_once(SIGINT), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(stop_once(SIGTERM), testing::ExitedWithCode(0), "^$");
}

TEST_F(InterruptDeathTest, TheSecondEndsAtOnce) {
  EXPECT_EXIT(stop_twice(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "^$");
  EXPECT_EXIT(stop_twice(SIGINT, SIGTERM), testing::KilledBySignal(SIGTERM), "^$");
}

TEST_F(InterruptDeathTest, IgnoredSignalsStayIgnored) {
  EXPECT_EXIT(stop_where_ignored(), testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace gs
