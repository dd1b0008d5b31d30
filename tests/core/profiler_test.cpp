#include "framework/core/profiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/support.h"

namespace gs {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

void spend(int64_t nanoseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
  while (std::chrono::steady_clock::now() < end) continue;
}

void work(const char* name, int64_t nanoseconds, Phase phase = Phase::kForward) {
  const OperationTimer timer(name, phase);
  spend(nanoseconds);
}

int64_t sum_of_selves(const Profile& profile) {
  int64_t sum = 0;
  for (const Profile::Operation& operation : profile.operations) sum += operation.self();
  return sum;
}

TEST(Profiler, SelfTimesAddUpToTheOutermostTotal) {
  start_profiling();
  {
    const OperationTimer timer("outer", Phase::kOther);
    for (int i = 0; i < 3; ++i) {
      const OperationTimer middle("middle");
      work("inner", kMillisecond);
      work("inner", kMillisecond);
      spend(kMillisecond);
    }
    spend(2 * kMillisecond);
  }
  const Profile profile = stop_profiling();
  const Profile::Cost outer = profile.cost("outer", Phase::kOther);
  const Profile::Cost middle = profile.cost("middle");
  const Profile::Cost inner = profile.cost("inner");
  EXPECT_EQ(outer.calls, 1);
  EXPECT_EQ(middle.calls, 3);
  EXPECT_EQ(inner.calls, 6);
  EXPECT_EQ(outer.total, outer.self + middle.total);
  EXPECT_EQ(middle.total, middle.self + inner.total);
  EXPECT_EQ(inner.total, inner.self);
  EXPECT_GE(inner.self, 6 * kMillisecond);
  EXPECT_GE(middle.self, 3 * kMillisecond);
  EXPECT_GE(outer.self, 2 * kMillisecond);
  EXPECT_EQ(sum_of_selves(profile), outer.total);
  EXPECT_EQ(profile.covered, outer.total);
  EXPECT_GE(profile.wall, outer.total);
}

TEST(Profiler, PhasesStandApart) {
  start_profiling();
  work("linear", kMillisecond);
  work("linear", 2 * kMillisecond, Phase::kBackward);
  work("adam", 0, Phase::kOther);
  const Profile profile = stop_profiling();
  EXPECT_EQ(profile.cost("linear").calls, 1);
  EXPECT_EQ(profile.cost("linear", Phase::kBackward).calls, 1);
  EXPECT_EQ(profile.cost("linear", Phase::kOther).calls, 0);
  EXPECT_GE(profile.cost("linear", Phase::kBackward).self, 2 * kMillisecond);
  EXPECT_EQ(profile.cost("adam", Phase::kOther).calls, 1);
  EXPECT_EQ(profile.cost("nothing").calls, 0);
  ASSERT_EQ(profile.operations.size(), 2u);
  EXPECT_EQ(profile.operations[0].name, "linear");  // most time first
}

// Backward functions may be written with operations.
TEST(Profiler, OperationsInBackwardFunctionsCountAsBackward) {
  start_profiling();
  {
    const OperationTimer timer("cube", Phase::kBackward);
    work("multiply", 0);
    work("batch", 0, Phase::kOther);
  }
  work("multiply", 0);
  const Profile profile = stop_profiling();
  EXPECT_EQ(profile.cost("multiply", Phase::kBackward).calls, 1);
  EXPECT_EQ(profile.cost("multiply").calls, 1);
  EXPECT_EQ(profile.cost("batch", Phase::kOther).calls, 1);
}

// A total holds the same time once only.
TEST(Profiler, AnOperationInsideItself) {
  start_profiling();
  {
    const OperationTimer outer("checkpointed");
    const OperationTimer inner("checkpointed");
    spend(kMillisecond);
  }
  const Profile profile = stop_profiling();
  const Profile::Cost cost = profile.cost("checkpointed");
  EXPECT_EQ(cost.calls, 2);
  EXPECT_EQ(cost.self, cost.total);
  EXPECT_LE(cost.total, profile.wall);
}

TEST(Profiler, RecordsNothingWhileItIsOff) {
  work("before", 0);
  const OperationTimer open_before("open before");
  start_profiling();
  EXPECT_TRUE(stop_profiling().operations.empty());
  work("between", 0);
  start_profiling({.maximum_events = 10});
  work("within", 0);
  const Profile profile = stop_profiling();
  ASSERT_EQ(profile.operations.size(), 1u);
  EXPECT_EQ(profile.operations[0].name, "within");
  EXPECT_EQ(profile.events.size(), 1u);
}

TEST(Profiler, ScopesThatOutliveTheirProfileAreDropped) {
  start_profiling();
  {
    const OperationTimer open("open");
    work("closed", 0);
    EXPECT_EQ(stop_profiling().cost("open").calls, 0);
    start_profiling();
    work("other", 0);  // has the number that "open" had
  }
  const Profile profile = stop_profiling();
  ASSERT_EQ(profile.operations.size(), 1u);
  EXPECT_EQ(profile.cost("other").calls, 1);
  EXPECT_EQ(profile.cost("other").total, profile.cost("other").self);
}

TEST(Profiler, CountsTheCallsOfAllThreads) {
  start_profiling({.maximum_events = 100'000});
  constexpr int kThreads = 4, kCalls = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kCalls; ++i) {
        const OperationTimer timer("outer");
        work("inner", 0, Phase::kBackward);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Profile profile = stop_profiling();
  const Profile::Cost outer = profile.cost("outer");
  EXPECT_EQ(outer.calls, kThreads * kCalls);
  EXPECT_EQ(profile.cost("inner", Phase::kBackward).calls, kThreads * kCalls);
  EXPECT_EQ(outer.total, sum_of_selves(profile));
  EXPECT_EQ(profile.covered, 0);  // this thread has only waited
  EXPECT_EQ(profile.events.size(), 2u * kThreads * kCalls);
}

TEST(Profiler, StoppingWhileThreadsWork) {
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      const OperationTimer timer("outer");
      work("inner", 0);
    }
  });
  for (int i = 0; i < 200; ++i) {
    start_profiling({.maximum_events = 50});
    std::this_thread::yield();
    const Profile profile = stop_profiling();
    EXPECT_LE(profile.cost("outer").calls, profile.cost("inner").calls + 1);
  }
  done = true;
  other.join();
}

TEST(Profiler, RefusesToStartTwiceAndToStopWhatIsNotRunning) {
  start_profiling();
  EXPECT_EQ(test::error_of([] { start_profiling(); }),
            "start_profiling: it is running already; stop it first");
  stop_profiling();
  EXPECT_EQ(test::error_of([] { stop_profiling(); }),
            "stop_profiling: it is not running; call start_profiling first");
  EXPECT_EQ(test::error_of([] { start_profiling({.maximum_events = -1}); }),
            "start_profiling: maximum_events must be 0 or more, got -1");
  start_profiling();  // the refused call has left nothing running
  stop_profiling();
}

TEST(Profiler, KeepsABoundedNumberOfEvents) {
  start_profiling({.maximum_events = 5});
  for (int i = 0; i < 12; ++i) work("call", 0);
  const Profile profile = stop_profiling();
  EXPECT_EQ(profile.events.size(), 5u);
  EXPECT_EQ(profile.events_left_out, 7);
  EXPECT_EQ(profile.cost("call").calls, 12);
}

// In order of their start, each within the one that called it: what viewers need to stack them.
TEST(Profiler, TheTraceIsJsonOfNestedEvents) {
  const std::string odd = "odd \"name\"\n\\ \xff";
  start_profiling({.maximum_events = 100});
  for (int i = 0; i < 3; ++i) {
    const OperationTimer outer(odd.c_str());
    work("inner", 1500);
    work("instant", 0, Phase::kBackward);
  }
  const nlohmann::json trace = nlohmann::json::parse(stop_profiling().trace());
  EXPECT_EQ(trace["otherData"]["events_left_out"], 0);
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 9u);
  double before = 0, outer_end = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const auto& event = events[i];
    EXPECT_EQ(event["ph"], "X");
    EXPECT_EQ(event["name"], i % 3 == 0   ? "odd \"name\"\n\\ \xEF\xBF\xBD"
                             : i % 3 == 1 ? "inner"
                                          : "instant");
    EXPECT_EQ(event["cat"], i % 3 == 2 ? "backward" : "forward");
    const double start = event["ts"], duration = event["dur"];
    EXPECT_GE(start, before);
    EXPECT_GE(duration, i % 3 == 1 ? 1.5 : 0);
    if (i % 3 == 0) {
      EXPECT_GE(start, outer_end);
      outer_end = start + duration;
    }
    EXPECT_LE(start + duration, outer_end + 1e-6);
    EXPECT_EQ(event["tid"], events[0]["tid"]);
    before = start;
  }
}

TEST(Profiler, AnEmptyTraceIsJson) {
  start_profiling();
  EXPECT_TRUE(nlohmann::json::parse(stop_profiling().trace())["traceEvents"].empty());
}

TEST(Profiler, TheTableShowsOperationsAndTheRest) {
  Profile profile;
  profile.wall = 2'000 * kMillisecond;
  profile.covered = 1'900 * kMillisecond;
  profile.operations = {
      {.name = "linear",
       .costs = {{{.calls = 12, .self = 500 * kMillisecond, .total = 500 * kMillisecond},
                  {.calls = 6, .self = 1'000 * kMillisecond, .total = 1'000 * kMillisecond},
                  {}}}},
      {.name = "validation",
       .costs = {{{}, {}, {.calls = 1, .self = 400 * kMillisecond, .total = 450 * kMillisecond}}}},
  };
  EXPECT_EQ(profile.text(),
            "Profile: 2.000 s, 5.00 % of it outside of what is listed\n"
            "                                          forward                     backward        "
            "       both\n"
            "operation                calls          ms      %     calls          ms      %        "
            "  ms      %\n"
            "linear                      12      500.00  25.00         6     1000.00  50.00     "
            "1500.00  75.00\n"
            "rest of the program      calls          ms      %   ms with all inside\n"
            "validation                   1      400.00  20.00               450.00\n");
}

}  // namespace
}  // namespace gs
