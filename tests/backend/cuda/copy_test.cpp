#include "framework/backend/copy.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using CudaCopy = test::CudaTest;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<DType> kTypes = {kFloat32, kFloat64, kInt32, kBool, kBFloat16};
const std::vector<int64_t> kCounts = {0, 1, 3, 4, 5, 15, 16, 17, 257, 1025, 4099};

TEST_F(CudaCopy, Fills) {
  for (const DType dtype : kTypes) {
    for (const int64_t count : kCounts) {
      const Array here = Array::full({count}, 3.7, dtype);
      const Array there = Array::full({count}, 3.7, dtype, Device::cuda());
      test::expect_near(there, here, 0, fmt::format("{} of {}", count, dtype));
    }
  }
}

// Every type to every other one, with what cannot be represented.
TEST_F(CudaCopy, Casts) {
  const Array values =
      Array::of<double>({13}, {0, -0.5, 1.9, -1.9, 1.00390625, 3e9, -3e9, 1e39, 1e-41, kInfinity,
                               -kInfinity, std::numeric_limits<double>::quiet_NaN(), 2147483647});
  for (const DType from : kTypes) {
    const Array here = values.to(from), there = here.to(Device::cuda());
    for (const DType to : kTypes)
      test::expect_near(there.to(to), here.to(to), 0, fmt::format("{} to {}", from, to));
  }
}

TEST_F(CudaCopy, Clones) {
  for (const int64_t count : kCounts) {
    const Array there = test::random_array({count}, 1).to(Device::cuda());
    const Array clone = there.clone();
    EXPECT_FALSE(clone.shares_memory(there));
    test::expect_near(clone, there, 0, "clone");
  }
}

// Slices and joins, with starts and steps that allow wide accesses and such that do not.
TEST_F(CudaCopy, Blocks) {
  const std::vector<backend::Blocks> cases = {
      {7, 8, 16, 24, 0, 8},     {7, 8, 16, 24, 1, 8}, {5, 3, 0, 3, 2, 7},
      {1, 33, 1, 0, 0, 5},      {9, 1, 0, 1, 3, 4},   {40, 16, 0, 16, 0, 0},
      {3, 257, 2, 300, 0, 257}, {0, 4, 0, 4, 0, 4},   {4, 0, 0, 1, 0, 1}};
  for (const auto& blocks : cases) {
    const Array y = test::random_array({1024}, 1), x = test::random_array({1024}, 2);
    const std::string name =
        fmt::format("{} blocks of {} from {}", blocks.rows, blocks.length, blocks.x_start);
    test::expect_same_on_both(name, {y, x}, [&](auto on, test::Place, std::vector<Array> in) {
      Array copied = in[0].clone(), sum = in[0].clone();
      backend::copy_blocks(on, copied, in[1], blocks);
      backend::accumulate_blocks(on, sum, in[1], blocks);
      return std::vector<Array>{copied, sum};
    });
    for (const DType dtype : {kInt32, kBool}) {
      Array here = y.to(dtype), there = here.to(Device::cuda());
      backend::copy_blocks(Cpu{}, here, x.to(dtype), blocks);
      backend::copy_blocks(Cuda{}, there, x.to(dtype).to(Device::cuda()), blocks);
      test::expect_near(there, here, 0, name);
    }
  }
}

TEST_F(CudaCopy, Accumulates) {
  for (const int64_t count : kCounts) {
    const std::vector<Array> inputs = {test::random_array({count}, 1),
                                       test::random_array({count}, 2)};
    test::expect_same_on_both("accumulate", inputs, [](auto on, auto, std::vector<Array> in) {
      Array y = in[0].clone();
      backend::accumulate(on, y, in[1]);
      return std::vector<Array>{y};
    });
  }
}

TEST_F(CudaCopy, FindsTheFirstThatIsNotFinite) {
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    std::vector<double> values(3000, 1.5);
    const auto first = [&] {
      const Array x = Array::of({3000}, values).to(dtype).to(Device::cuda());
      return backend::first_non_finite(Cuda{}, x);
    };
    EXPECT_EQ(first(), -1);
    values[2999] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(first(), 2999);
    values[1025] = -kInfinity;
    values[1026] = kInfinity;
    EXPECT_EQ(first(), 1025);
  }
  EXPECT_EQ(backend::first_non_finite(Cuda{}, Array::empty({0}, kFloat32, Device::cuda())), -1);
  EXPECT_EQ(backend::first_non_finite(Cuda{}, Array::zeros({5}, kInt32, Device::cuda())), -1);
}

}  // namespace
}  // namespace gs
