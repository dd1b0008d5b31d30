#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/core/device.h"

namespace gs::test {

// Where tests run: the CPU, and the first CUDA device where one can be used.
std::vector<Device> devices();

// Why no test runs on CUDA: the build or the machine has none. Empty where one can be used.
std::string reason_without_cuda();

// Calls `body` for each of devices(), whose name stands in the messages of what fails.
void for_each_device(const std::function<void(Device)>& body);

// Tests of CUDA alone: skipped, with the reason, where none can be used.
//   using MyOperationOnCuda = test::CudaTest;
//   TEST_F(MyOperationOnCuda, DoesIt) { ... Device::cuda() ... }
class CudaTest : public testing::Test {
 protected:
  void SetUp() override;
};

}  // namespace gs::test
