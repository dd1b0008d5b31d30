#include "framework/train/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "framework/backend/gemm.h"

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
  usleep(250'000);
  raise(second);
  std::exit(1);
}

// As timeout(1) does.
[[noreturn]] void stop_once_in_two_ways(int number) {
  catch_interrupts();
  raise(number);
  kill(getpid(), number);
  std::exit(interrupted() ? 0 : 1);
}

[[noreturn]] void stop_where_ignored() {
  signal(SIGINT, SIG_IGN);
  catch_interrupts();
  raise(SIGINT);
  raise(SIGINT);
  std::exit(interrupted() ? 1 : 0);
}

// Waits for the signal to end the process.
[[noreturn]] void stop_and_wait(int number) {
  raise(number);
  sleep(10);
  std::exit(1);
}

[[noreturn]] void stop_with_last_words(int number) {
  before_interrupt_ends([] { std::fputs("last words", stderr); });
  stop_and_wait(number);
}

[[noreturn]] void stop_once_with_last_words() {
  before_interrupt_ends([] { std::fputs("last words", stderr); });
  stop_once(SIGINT);
}

[[noreturn]] void stop_after_release(bool with_last_words) {
  if (with_last_words) before_interrupt_ends([] { std::fputs("last words", stderr); });
  catch_interrupts();
  release_interrupts();
  stop_and_wait(SIGINT);
}

[[noreturn]] void stop_twice_with_endless_words() {
  before_interrupt_ends([] {
    std::fputs("last words", stderr);
    sleep(10);
  });
  raise(SIGTERM);
  usleep(250'000);
  stop_and_wait(SIGINT);
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

TEST_F(InterruptDeathTest, OneThatIsSentTwiceCountsOnce) {
  EXPECT_EXIT(stop_once_in_two_ways(SIGINT), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(stop_once_in_two_ways(SIGTERM), testing::ExitedWithCode(0), "^$");
}

TEST_F(InterruptDeathTest, IgnoredSignalsStayIgnored) {
  EXPECT_EXIT(stop_where_ignored(), testing::ExitedWithCode(0), "^$");
}

TEST_F(InterruptDeathTest, WhatIsNotCaughtEndsTheProcessAfterTheLastWords) {
  EXPECT_EXIT(stop_with_last_words(SIGINT), testing::KilledBySignal(SIGINT), "^last words$");
  EXPECT_EXIT(stop_with_last_words(SIGTERM), testing::KilledBySignal(SIGTERM), "^last words$");
  EXPECT_EXIT(stop_once_with_last_words(), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(stop_twice_with_endless_words(), testing::KilledBySignal(SIGINT), "^last words$");
}

TEST_F(InterruptDeathTest, ReleasedTheFirstEndsTheProcess) {
  EXPECT_EXIT(stop_after_release(false), testing::KilledBySignal(SIGINT), "^$");
  EXPECT_EXIT(stop_after_release(true), testing::KilledBySignal(SIGINT), "^last words$");
}

// Multiplies until it is interrupted, and some more: 0 where the product is still right. Tells
// `ready` when it may be interrupted.
int multiply_until_interrupted(int ready) {
  catch_interrupts();
  const int64_t n = 160;
  const std::vector<float> a(static_cast<size_t>(n * n), 0.5f);
  std::vector<float> c(static_cast<size_t>(n * n));
  const auto multiply = [&] {
    backend::gemm(Cpu{}, {.m = n, .n = n, .k = n, .a_stride = n, .b_stride = n, .c_stride = n},
                  a.data(), a.data(), c.data());
  };
  alarm(20);
  multiply();
  if (write(ready, "", 1) != 1) return 2;
  while (!interrupted()) multiply();
  for (int i = 0; i < 20; ++i) multiply();
  return c == std::vector<float>(static_cast<size_t>(n * n), 40.0f) ? 0 : 1;
}

// A handler must not write where a kernel of oneDNN has put the stack pointer: in the heap.
TEST(Interrupt, LeavesMatrixProductsAlone) {
  for (int i = 0; i < 12; ++i) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) _exit(multiply_until_interrupted(ready[1]));
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    usleep(static_cast<useconds_t>(1000 + 170 * i));
    kill(child, SIGTERM);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "run " << i << ": " << status;
  }
}

}  // namespace
}  // namespace gs
