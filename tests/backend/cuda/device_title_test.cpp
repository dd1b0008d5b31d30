#include "framework/backend/device_title.h"

#include <gtest/gtest.h>

namespace gs::backend {
namespace {

TEST(DeviceTitle, TellsWhyThereIsNoCudaDevice) {
  constexpr int kOldDriver = 35, kNoDevice = 100, kNotReady = 802;  // of cudaError_t
  const auto reason = [](int error, int driver) {
    return no_device_reason(Cuda{}, error, driver, 13020);
  };
  EXPECT_EQ(reason(kOldDriver, 12040),
            "the driver is one for CUDA 12.4, where 13.2 is needed; install a newer driver, or use "
            "cpu");
  EXPECT_EQ(reason(kOldDriver, 0), "no CUDA device is visible; use cpu");
  EXPECT_EQ(reason(kNoDevice, 13000), "no CUDA device is visible; use cpu");
  EXPECT_TRUE(reason(kNotReady, 13000).starts_with("no CUDA device can be used: "));
}

}  // namespace
}  // namespace gs::backend
