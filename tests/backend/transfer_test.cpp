#include "framework/backend/transfer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "framework/backend/delayed_values.h"
#include "framework/backend/scale.h"
#include "framework/backend/staged_upload.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using Doubles = std::vector<double>;

Array filled(Device device, const Doubles& values) {
  return Array::of<double>({static_cast<int64_t>(values.size())}, values).to(device);
}

void scale(Array& y, const Array& x, double factor) {
  on_device(x.device(), [&](auto on) { backend::scale(on, y, x, factor); });
}

void copy_in_order(Array& to, const void* from) {
  on_device(to.device(), [&](auto on) { backend::copy_in_order(on, to.raw(), from, to.bytes()); });
}

// Each step sees its own batch, however far the host is ahead.
TEST(StagedUpload, EachStepSeesWhatWasSentForIt) {
  test::for_each_device([](Device device) {
    constexpr int kSteps = 9;
    StagedUpload upload(device, 3 * sizeof(double));
    EXPECT_EQ(upload.bytes(), 24);
    std::vector<Array> seen;
    for (int i = 0; i < kSteps; ++i) {
      const Doubles batch{i + 0.5, i * 2.0, -1.0 * i};
      std::memcpy(upload.next(), batch.data(), 3 * sizeof(double));
      upload.send(3 * sizeof(double));
      copy_in_order(seen.emplace_back(filled(device, {0, 0, 0})), upload.data());
      scale(seen.back(), seen.back(), 2);
    }
    for (int i = 0; i < kSteps; ++i) {
      EXPECT_EQ(seen[static_cast<size_t>(i)].values<double>(),
                (Doubles{2 * i + 1.0, i * 4.0, -2.0 * i}));
    }
  });
}

TEST(StagedUpload, LeavesTheRestAsItWasAndRefusesTooMuch) {
  test::for_each_device([](Device device) {
    StagedUpload upload(device, 16);
    const auto send = [&](const Doubles& values) {
      std::memcpy(upload.next(), values.data(), values.size() * sizeof(double));
      upload.send(static_cast<int64_t>(values.size() * sizeof(double)));
    };
    send({1, 2});
    send({3});
    upload.send(0);
    Array seen = filled(device, {0, 0});
    copy_in_order(seen, upload.data());
    EXPECT_EQ(seen.values<double>(), (Doubles{3, 2}));
    EXPECT_EQ(test::error_of([&] { upload.send(17); }),
              "staged upload: holds 16 bytes, got 17; make a larger one");
  });
}

TEST(DelayedValues, AreThoseOfTheirStep) {
  test::for_each_device([](Device device) {
    DelayedValues delayed(device, 2, 3);
    Array x = filled(device, {1, -1});
    Doubles firsts;
    const auto take = [&](const Doubles& values) {
      EXPECT_EQ(values[1], -values[0]);
      firsts.push_back(values[0]);
    };
    for (int i = 0; i < 10; ++i) {
      if (delayed.full()) take(delayed.wait());
      delayed.push(x);
      scale(x, x, 2);
    }
    while (delayed.pending() > 0) take(delayed.wait());
    EXPECT_EQ(firsts, (Doubles{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  });
}

TEST(DelayedValues, ComeWhenTheyHaveArrived) {
  test::for_each_device([](Device device) {
    DelayedValues delayed(device, 1, 2);
    EXPECT_EQ(delayed.pop(), std::nullopt);
    const Array x = filled(device, {7});
    delayed.push(x);
    on_device(device, [](auto on) { backend::wait_for(on, backend::mark(on)); });
    EXPECT_EQ(delayed.pop(), Doubles{7});
    EXPECT_EQ(delayed.pending(), 0);
  });
}

TEST(DelayedValues, RefuseWhatDoesNotFit) {
  test::for_each_device([](Device device) {
    DelayedValues delayed(device, 1, 1);
    EXPECT_EQ(test::error_of([&] { delayed.wait(); }),
              "delayed values: nothing is under way; push something first");
    EXPECT_EQ(test::error_of([&] {
                delayed.push(filled(device, {1, 2}));
              }),
              fmt::format("delayed values: needs 1 values on {0}, got 2 on {0}", device));
    const Array x = filled(device, {1});
    delayed.push(x);
    EXPECT_EQ(test::error_of([&] { delayed.push(x); }),
              "delayed values: 1 readings are under way, got one more; take some out");
    EXPECT_EQ(test::error_of([&] { DelayedValues(device, 0, 1); }),
              "delayed values: needs at least 1 value and 1 reading, got 0 and 1");
  });
}

}  // namespace
}  // namespace gs
