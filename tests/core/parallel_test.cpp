#include "framework/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/support.h"

namespace gs {
namespace {

// Restores the number of threads at the end of a test.
struct Threads {
  explicit Threads(int count) : before(threads()) { set_threads(count); }
  ~Threads() { set_threads(before); }
  const int before;
};

TEST(ParallelFor, CoversEveryElementOnce) {
  for (const int count : {1, 2, 3, 8}) {
    const Threads guard(count);
    for (const int64_t size : {0, 1, 2, 7, 100, 1001}) {
      std::vector<int> seen(static_cast<size_t>(size));
      for (int repeat = 0; repeat < 200; ++repeat) {
        parallel_for(0, size, 1, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
        });
      }
      for (const int uses : seen) ASSERT_EQ(uses, 200);
    }
  }
}

TEST(ParallelFor, DoesNotSplitBelowTheGrain) {
  const Threads guard(4);
  std::atomic<int> calls{0};
  parallel_for(0, 100, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
  calls = 0;
  parallel_for(0, 101, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(ParallelFor, NestedCallsRunInTheirThread) {
  const Threads guard(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 8, 1, [&](int64_t first, int64_t last) {
    const auto self = std::this_thread::get_id();
    for (int64_t i = first; i < last; ++i) {
      parallel_for(0, 100, 1, [&](int64_t from, int64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        sum += to - from;
      });
    }
  });
  EXPECT_EQ(sum, 800);
}

TEST(ParallelFor, ServesSeveralCallers) {
  const Threads guard(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 500; ++repeat) {
        parallel_for(0, 10, 1, [&](int64_t first, int64_t last) { sum += last - first; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 10);
}

TEST(ParallelFor, RefusesNoThreads) {
  EXPECT_EQ(test::error_of([] { set_threads(0); }), "threads: 1 to 1024 are possible, got 0");
}

}  // namespace
}  // namespace gs
