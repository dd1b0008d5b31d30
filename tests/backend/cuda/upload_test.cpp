#include "framework/backend/cuda/upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/support/devices.h"

namespace gs {
namespace {

using Upload = test::CudaTest;

TEST_F(Upload, TheHostMayWriteAtOnce) {
  for (const size_t count : {1, 511, 512, 513, 2048, 2049, 50'000}) {
    std::vector<int32_t> host(count);
    std::iota(host.begin(), host.end(), 7);
    const std::vector<int32_t> sent = host;
    const Array copy =
        backend::upload(Cuda{}, host.data(), static_cast<int64_t>(count * sizeof(int32_t)));
    std::fill(host.begin(), host.end(), -1);
    EXPECT_EQ(copy.values<int32_t>(), sent);
  }
}

}  // namespace
}  // namespace gs
