#include "framework/backend/captured_steps.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/backend/array.h"
#include "framework/backend/delayed_values.h"
#include "framework/backend/scale.h"
#include "framework/backend/store.h"

namespace gs {
namespace {

std::vector<Device> devices() {
  std::vector<Device> all{Device::cpu()};
  if (cuda_device_count() > 0) all.push_back(Device::cuda());
  return all;
}

bool records(Device device) { return device != Device::cpu(); }

Array on(Device device, const std::vector<float>& values) {
  return Array::of<float>({static_cast<int64_t>(values.size())}, values).to(device);
}

void scale(Array& y, const Array& x, double factor) {
  on_device(x.device(), [&](auto on) { backend::scale(on, y, x, factor); });
}

// y = 6 x by way of an array of the step.
void six_times(Array& y, const Array& x) {
  Array twice = Array::like(x);
  scale(twice, x, 2);
  scale(y, twice, 3);
}

TEST(CapturedSteps, EachRunDoesTheWorkOnce) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {1, 2, -3}), y = Array::like(x);
    int calls = 0;
    for (int i = 0; i < 10; ++i) {
      steps.run({3}, [&] {
        ++calls;
        six_times(y, x);
        scale(x, y, 0.5);
      });
    }
    EXPECT_EQ(x.values<float>(), (std::vector<float>{59049, 2 * 59049, -3 * 59049}));
    EXPECT_EQ(calls, records(device) ? 2 : 10);
    EXPECT_EQ(steps.recorded(), records(device) ? 1 : 0);
    EXPECT_EQ(steps.replays(), records(device) ? 9 : 0);
  }
}

TEST(CapturedSteps, ReplaysReadWhatStandsInTheirArrays) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {0}), y = Array::like(x);
    for (const float value : {1.0f, 5.0f, -2.0f, 0.25f}) {
      on_device(device, [&](auto on) { backend::store(on, x.raw(), &value, sizeof(value)); });
      steps.run({}, [&] { six_times(y, x); });
      EXPECT_EQ(y.values<float>(), std::vector<float>{6 * value});
    }
  }
}

TEST(CapturedSteps, KeepAsManyAsAllowed) {
  for (const Device device : devices()) {
    CapturedSteps steps(device, 2);
    Array x = on(device, {1, 2}), y = Array::like(x);
    int calls = 0;
    const auto run = [&](int64_t key) {
      const int before = calls;
      steps.run({key}, [&] {
        ++calls;
        scale(y, x, static_cast<double>(key));
      });
      EXPECT_EQ(y.values<float>(),
                (std::vector<float>{static_cast<float>(key), 2.0f * static_cast<float>(key)}));
      return calls > before;
    };
    for (const int64_t key : {1, 1, 2, 2}) EXPECT_TRUE(run(key));
    EXPECT_EQ(steps.recorded(), records(device) ? 2 : 0);
    for (const int64_t key : {1, 2, 1}) EXPECT_EQ(run(key), !records(device));
    EXPECT_TRUE(run(3));  // takes the place of 2
    EXPECT_EQ(run(1), !records(device));
    EXPECT_TRUE(run(2));  // takes the place of 3, and has to be seen twice
    EXPECT_TRUE(run(2));
    EXPECT_EQ(run(2), !records(device));
    EXPECT_LE(steps.recorded(), 2);
  }
}

TEST(CapturedSteps, NothingElseGetsTheirMemory) {
  for (const Device device : devices()) {
    if (!records(device)) continue;
    release_cached_memory(device);
    const MemoryFigures before = memory_figures(device);
    {
      CapturedSteps steps(device);
      Array x = on(device, {1, 2, 3}), y = Array::like(x);
      for (int i = 0; i < 5; ++i) {
        steps.run({}, [&] { six_times(y, x); });
        // Of the size of the step's array, which is free on the host's side and lives in the graph.
        const Array other = on(device, {7, 7, 7}), another = on(device, {8, 8, 8});
        steps.run({}, [&] { six_times(y, x); });
        EXPECT_EQ(other.values<float>(), (std::vector<float>{7, 7, 7}));
        EXPECT_EQ(another.values<float>(), (std::vector<float>{8, 8, 8}));
        EXPECT_EQ(y.values<float>(), (std::vector<float>{6, 12, 18}));
        release_cached_memory(device);
      }
    }
    EXPECT_EQ(memory_figures(device).live, before.live);
    release_cached_memory(device);
    EXPECT_EQ(memory_figures(device).cached, 0);
  }
}

// Steps of many sizes do not have as many pools.
TEST(CapturedSteps, ShareTheirMemory) {
  if (std::getenv("GRADSTONE_CUDA_CACHE") != nullptr)
    GTEST_SKIP() << "GRADSTONE_CUDA_CACHE: blocks have their exact sizes";
  for (const Device device : devices()) {
    if (!records(device)) continue;
    release_cached_memory(device);
    CapturedSteps steps(device);
    Array x = on(device, {1}), y = Array::like(x);
    const auto kept_after = [&](int64_t mebibytes) {
      for (int i = 0; i < 3; ++i) {
        steps.run({mebibytes}, [&] {
          const Array array = Array::empty({mebibytes << 18}, kFloat32, device);
          scale(y, x, 2);
        });
      }
      return memory_figures(device).cached >> 20;
    };
    int64_t kept = 0;
    for (const int64_t size : {16, 17, 18, 19, 20, 21, 22, 23}) kept = kept_after(size);
    EXPECT_LE(kept, 2 * 24);
    kept = kept_after(40);
    for (const int64_t size : {36, 37, 38, 39, 16, 20, 24}) EXPECT_EQ(kept_after(size), kept);
  }
}

TEST(CapturedSteps, WhatTheyFreeStaysTheirs) {
  for (const Device device : devices()) {
    if (!records(device)) continue;
    CapturedSteps steps(device);
    Array x = on(device, {1, 2, 3}), y = Array::like(x);
    Array from_outside = Array::like(x);
    for (int i = 0; i < 2; ++i) {
      steps.run({}, [&] {
        scale(from_outside, x, 2);
        scale(y, from_outside, 1);
        if (i == 1) from_outside = Array();
      });
    }
    const Array other = on(device, {7, 7, 7});
    steps.run({}, [] {});
    EXPECT_EQ(other.values<float>(), (std::vector<float>{7, 7, 7}));
    EXPECT_EQ(y.values<float>(), (std::vector<float>{2, 4, 6}));
  }
}

TEST(CapturedSteps, RunAsTheyAreWhatCannotBeRecorded) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {1, 2}), y = Array::like(x);
    std::vector<float> read;
    const auto work = [&] {
      scale(y, x, 2);
      read = y.values<float>();
      scale(x, y, 1);
    };
    testing::internal::CaptureStderr();
    for (int i = 0; i < 4; ++i) steps.run({}, work);
    for (int i = 0; i < 2; ++i) steps.run({1}, work);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              records(device)
                  ? "gradstone: steps on cuda:0 are not recorded, which makes them slower: memory: "
                    "a step that is recorded copies between host and device; keep what it needs on "
                    "the device\n"
                  : "");
    EXPECT_EQ(read, (std::vector<float>{64, 128}));
    EXPECT_EQ(steps.recorded(), 0);
  }
}

// What the host's part of a step has done could not be taken back.
TEST(CapturedSteps, BreakOffNoStepThatCannotBeRecorded) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {1, 2});
    int begun = 0, ended = 0;
    testing::internal::CaptureStderr();
    for (int i = 0; i < 4; ++i) {
      steps.run({}, [&] {
        ++begun;
        x.values<float>();
        ++ended;
      });
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), !records(device));
    EXPECT_EQ(begun, 4);
    EXPECT_EQ(ended, 4);
  }
}

TEST(CapturedSteps, TheFirstRunMayReadAndWrite) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {1, 2}), y = Array::like(x), factors;
    testing::internal::CaptureStderr();
    for (int i = 0; i < 5; ++i) {
      steps.run({}, [&] {
        if (!factors.defined()) factors = on(device, {3, 5});
        scale(y, factors, 2);
        scale(x, y, 0.5);
      });
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    EXPECT_EQ(x.values<float>(), (std::vector<float>{3, 5}));
    EXPECT_EQ(steps.recorded(), records(device) ? 1 : 0);
  }
}

TEST(CapturedSteps, WaitsAreNotRecorded) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    DelayedValues values(device, 1, 1);
    const Array number = Array::full({1}, 3, kFloat64, device);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
      steps.run({}, [&] {
        values.push(number);
        EXPECT_EQ(values.wait(), std::vector<double>{3});
      });
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), !records(device));
    EXPECT_EQ(steps.recorded(), 0);
  }
}

TEST(CapturedSteps, ErrorsOfAStepArePassedOn) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    const auto work = [] { fail("step: is not possible"); };
    EXPECT_THROW(steps.run({}, work), Error);
    EXPECT_THROW(steps.run({}, work), Error);
    Array x = on(device, {1}), y = Array::like(x);
    for (int i = 0; i < 3; ++i) steps.run({}, [&] { scale(y, x, 3); });
    EXPECT_EQ(y.values<float>(), std::vector<float>{3});
    EXPECT_EQ(steps.recorded(), records(device) ? 1 : 0);
  }
}

// Also while the step is recorded: to run it once more would do half of it twice.
TEST(CapturedSteps, ErrorsWhileRecordingArePassedOn) {
  for (const Device device : devices()) {
    CapturedSteps steps(device);
    Array x = on(device, {1}), y = Array::like(x);
    int calls = 0;
    const auto work = [&] {
      scale(y, x, 3);
      if (++calls == 2) fail("step: is not possible");
    };
    steps.run({}, work);
    EXPECT_THROW(steps.run({}, work), Error);
    EXPECT_EQ(calls, 2);
    for (int i = 0; i < 3; ++i) steps.run({}, work);
    EXPECT_EQ(y.values<float>(), std::vector<float>{3});
    EXPECT_EQ(steps.recorded(), records(device) ? 1 : 0);
  }
}

TEST(CapturedSteps, GeneratorAdvancesAsInARun) {
  for (const Device device : devices()) {
    Generator generator(5);
    CapturedSteps steps(device, 16, generator);
    for (int i = 0; i < 5; ++i) {
      steps.run({}, [&] { generator.next(), generator.next(); });
      EXPECT_EQ(generator.state(), (RandomState{5, 2 * (static_cast<uint64_t>(i) + 1)}));
    }
    EXPECT_EQ(steps.replays(), records(device) ? 4 : 0);
  }
}

}  // namespace
}  // namespace gs
