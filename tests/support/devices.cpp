#include "tests/support/devices.h"

#include "framework/backend/backend.h"

namespace gs::test {

std::vector<Device> devices() {
  std::vector<Device> result{Device::cpu()};
  if (cuda_device_count() > 0) result.push_back(Device::cuda());
  return result;
}

std::string reason_without_cuda() {
  if (!kWithCuda) return "built without CUDA";
  return cuda_device_count() > 0 ? "" : "no CUDA device is visible";
}

void for_each_device(const std::function<void(Device)>& body) {
  for (const Device device : devices()) {
    SCOPED_TRACE("on " + device.text());
    body(device);
  }
}

void CudaTest::SetUp() {
  const std::string reason = reason_without_cuda();
  if (!reason.empty()) GTEST_SKIP() << reason;
}

}  // namespace gs::test
