#include "framework/backend/permute.h"

#include <gtest/gtest.h>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using CudaPermute = test::CudaTest;

struct Case {
  Shape shape;
  std::vector<int> order;
};

// Blocks, wide and not; tiles, whole and not; axes too short for tiles; nothing to do.
const std::vector<Case> kCases = {
    {{2, 5, 3, 16}, {0, 2, 1, 3}},
    {{2, 5, 3, 7}, {0, 2, 1, 3}},
    {{64, 32}, {1, 0}},
    {{33, 65}, {1, 0}},
    {{31, 9}, {1, 0}},
    {{3, 500}, {1, 0}},
    {{500, 3}, {1, 0}},
    {{4, 33, 40}, {0, 2, 1}},
    {{4, 33, 40}, {2, 1, 0}},
    {{4, 33, 40}, {2, 0, 1}},
    {{9, 2, 10, 3}, {3, 1, 2, 0}},
    {{4, 5, 6}, {0, 1, 2}},
    {{1, 5, 1, 7}, {2, 1, 0, 3}},
    {{0, 3}, {1, 0}},
    {{}, {}},
    {{2, 3, 2, 3, 2, 3, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}},
};

TEST_F(CudaPermute, TurnsAsTheCpuDoes) {
  for (const Case& c : kCases) {
    std::vector<int64_t> sizes;
    for (const int d : c.order) sizes.push_back(c.shape[d]);
    const Array x = test::random_array(c.shape, 1);
    for (const DType dtype : {kFloat32, kFloat64, kInt32, kBool, kBFloat16}) {
      Array here = Array::empty(Shape(sizes), dtype), there = here.to(Device::cuda());
      backend::permute(Cpu{}, here, x.to(dtype), c.order);
      backend::permute(Cuda{}, there, x.to(dtype).to(Device::cuda()), c.order);
      test::expect_near(there, here, 0, fmt::format("{} of {}", dtype, c.shape));
    }
  }
}

}  // namespace
}  // namespace gs
