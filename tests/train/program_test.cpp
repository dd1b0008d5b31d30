#include "framework/train/program.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>

#include "framework/core/error.h"

namespace gs {
namespace {

struct Outcome {
  int status;
  std::string message;
};

Outcome outcome_of(const std::function<int()>& body) {
  char name[] = "/usr/bin/train";
  char* arguments[] = {name, nullptr};
  testing::internal::CaptureStderr();
  const int status = run_program(1, arguments, [&](int, char**) { return body(); });
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(Program, GivesTheBodysStatus) {
  EXPECT_EQ(outcome_of([] { return 0; }).status, 0);
  EXPECT_EQ(outcome_of([] { return 3; }).status, 3);
  EXPECT_EQ(outcome_of([] { return 0; }).message, "");
}

TEST(Program, ErrorsAreOneLine) {
  const Outcome outcome = outcome_of([]() -> int { fail("--epochs: out\nof range"); });
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.message, "train: --epochs: out of range\n");
}

TEST(Program, FilesThatCannotBeUsed) {
  const Outcome outcome = outcome_of([]() -> int {
    std::filesystem::create_directory("/proc/gradstone/a");
    return 0;
  });
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.message.find("/proc/gradstone/a"), std::string::npos) << outcome.message;
}

TEST(Program, OtherFaultsGiveOne) {
  EXPECT_EQ(outcome_of([]() -> int { throw std::logic_error("odd"); }).message, "train: odd\n");
  EXPECT_EQ(outcome_of([]() -> int { throw std::logic_error("odd"); }).status, 1);
  const Outcome memory = outcome_of([]() -> int { throw std::bad_alloc(); });
  EXPECT_EQ(memory.status, 1);
  EXPECT_EQ(memory.message, "train: out of memory; use smaller batches or a smaller model\n");
}

[[noreturn]] void write_to_a_closed_pipe() {
  std::signal(SIGPIPE, SIG_IGN);
  FILE* reader = popen("exit 0", "w");
  std::exit(outcome_of([&] {
              for (int i = 0; i < 100000; ++i) std::fputs("line\n", reader);
              std::fflush(reader);
              return 5;
            }).status);
}

[[noreturn]] void write_to_a_full_disk() {
  if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(77);
  char name[] = "train";
  char* arguments[] = {name, nullptr};
  std::exit(run_program(1, arguments, [](int, char**) {
    std::puts("result");
    return 0;
  }));
}

TEST(ProgramDeathTest, ABrokenPipeEndsQuietly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_to_a_closed_pipe(), testing::KilledBySignal(SIGPIPE), "^$");
}

TEST(ProgramDeathTest, AFullDiskUnderStdoutIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_to_a_full_disk(), testing::ExitedWithCode(2),
              "train: standard output: cannot be written, No space left on device");
}

}  // namespace
}  // namespace gs
