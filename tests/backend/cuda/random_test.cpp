#include "framework/backend/random.h"

#include <gtest/gtest.h>

#include "framework/backend/dropout.h"
#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using CudaRandom = test::CudaTest;
using CudaDropout = test::CudaTest;
using Inputs = std::vector<Array>;

const std::vector<int64_t> kCounts = {0, 1, 2, 3, 4, 5, 31, 1023, 1025, 4098};

// Bit for bit; normal numbers to within what their functions differ.
TEST_F(CudaRandom, DrawsTheNumbersOfTheCpu) {
  for (const int64_t count : kCounts) {
    for (const DType dtype : {kFloat32, kFloat64}) {
      Array here = Array::empty({count}, dtype), there = here.to(Device::cuda());
      backend::random_uniform(Cpu{}, here, {7, 3}, -0.3, 1.7);
      backend::random_uniform(Cuda{}, there, {7, 3}, -0.3, 1.7);
      test::expect_near(there, here, 0, "uniform");
      backend::random_normal(Cpu{}, here, {7, 4}, 0.1, 2);
      backend::random_normal(Cuda{}, there, {7, 4}, 0.1, 2);
      test::expect_near(there, here, dtype == kFloat32 ? 1e-6 : 1e-14, "normal");
    }
    Array here = Array::empty({count}, kInt32), there = here.to(Device::cuda());
    backend::random_integers(Cpu{}, here, {7, 5}, -3, INT32_MAX);
    backend::random_integers(Cuda{}, there, {7, 5}, -3, INT32_MAX);
    test::expect_near(there, here, 0, "integers");
  }
}

// The upper bound is out of reach where rounding would make it.
TEST_F(CudaRandom, KeepsBelowTheUpperBound) {
  Array y = Array::empty({5000}, kFloat32, Device::cuda());
  backend::random_uniform(Cuda{}, y, {1, 1}, 16777216, 16777218);
  for (const float value : y.values<float>()) ASSERT_LT(value, 16777218.0f);
}

TEST_F(CudaDropout, KeepsWhatTheCpuKeeps) {
  for (const double probability : {0.0, 0.3, 1.0}) {
    const auto mask = backend::DropoutMask::of(probability, {11, 2});
    for (const int64_t count : kCounts) {
      test::expect_same_on_both(fmt::format("dropout {} of {}", probability, count),
                                {test::random_array({count}, 1), test::random_array({count}, 2)},
                                [&](auto on, const test::Place& place, const Inputs& in) {
                                  Array y = place.empty({count}), sum = place.empty({count}),
                                        same = in[0].clone();
                                  backend::dropout(on, y, in[0], mask);
                                  backend::dropout(on, same, same, mask);  // in place
                                  backend::residual(on, sum, in[0], in[1], mask);
                                  return Inputs{y, same, sum};
                                });
    }
  }
}

}  // namespace
}  // namespace gs
