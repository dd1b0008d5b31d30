#include "framework/train/device_option.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/backend/backend.h"
#include "framework/train/program.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::HasSubstr;

Device chosen(const char* text) {
  Options options("program", "Computes.");
  DeviceOption device;
  device.bind(options);
  const char* const words[] = {"program", "--device", text};
  EXPECT_TRUE(options.parse(3, words));
  return device.device();
}

TEST(DeviceOption, TheDefaultTakesADeviceWhereOneIs) {
  Options options("program", "Computes.");
  DeviceOption device;
  device.bind(options);
  const Device expected = test::devices().back();
  EXPECT_EQ(device.device(), expected);
  EXPECT_EQ(chosen("auto"), expected);
  EXPECT_THAT(options.help(), HasSubstr("--device"));
  EXPECT_THAT(options.help(), HasSubstr("auto"));
  EXPECT_TRUE(options.values().empty());  // of this call alone: a run goes on anywhere
}

TEST(DeviceOption, TakesTheCpuEverywhere) { EXPECT_EQ(chosen("cpu"), Device::cpu()); }

TEST(DeviceOption, RefusesWhatIsNoDevice) {
  for (const char* text : {"gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "CUDA"}) {
    EXPECT_EQ(
        error_of([&] { chosen(text); }),
        std::string("--device: must be auto, cpu, cuda or cuda:1, 2, ..., got '") + text + "'");
  }
}

TEST(DeviceOption, TellsWhatIsMissing) {
  const std::string reason = test::reason_without_cuda();
  if (!reason.empty()) {
    EXPECT_EQ(error_of([] { chosen("cuda:0"); }),
              kWithCuda ? "--device: cuda:0 is wanted, and no CUDA device is visible; use cpu"
                        : "--device: cuda:0 is wanted, and this build has no CUDA; use cpu, or "
                          "build with -DGS_WITH_CUDA=ON");
    return;
  }
  EXPECT_EQ(chosen("cuda"), Device::cuda());
  EXPECT_THAT(error_of([] { chosen("cuda:63"); }),
              HasSubstr("--device: cuda:63 is wanted, and the visible CUDA devices are cuda:0 to"));
}

TEST(DeviceOption, TitlesNameWhatComputes) {
  EXPECT_THAT(device_title(Device::cpu()), HasSubstr(" threads; " + compute_title()));
  if (!test::reason_without_cuda().empty()) return;
  EXPECT_THAT(device_title(Device::cuda()), testing::MatchesRegex("cuda:0, .+"));
}

}  // namespace
}  // namespace gs
