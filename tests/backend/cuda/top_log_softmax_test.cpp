#include "framework/backend/top_log_softmax.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;
using CudaTopLogSoftmax = test::CudaTest;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_same(const Array& x, int64_t count) {
  const Shape shape{x.shape()[0], count};
  test::expect_same_on_both(fmt::format("{} of {}", count, x.shape()), {x},
                            [&](auto on, const Place& place, const std::vector<Array>& in) {
                              Array values = place.empty(shape);
                              Array indices = place.empty(shape, kInt32);
                              backend::top_log_softmax(on, values, indices, in[0]);
                              return std::vector<Array>{values, indices};
                            });
}

TEST_F(CudaTopLogSoftmax, OddSizes) {
  for (const int64_t length : {1, 5, 31, 33, 256, 1024, 1025, 2048}) {
    for (const int64_t count : {1, 5}) {
      if (count <= length) expect_same(test::random_array({3, length}, 1), count);
    }
  }
  expect_same(test::random_array({2, 40}, 1), 40);
  expect_same(test::random_array({0, 4}, 1), 2);
  expect_same(test::random_array({2, 4}, 1), 0);
}

TEST_F(CudaTopLogSoftmax, TiesInfinitiesAndNaN) {
  for (const int64_t length : {6, 1300}) {
    const auto size = static_cast<size_t>(length);
    std::vector<double> values(6 * size, 0.5);  // the first row: all alike
    for (size_t i = 0; i < size; ++i) {
      values[size + i] = -kInfinity;
      values[2 * size + i] = i == 3 ? 1 : -kInfinity;
      values[3 * size + i] = static_cast<double>(i % 3);
    }
    values[4 * size + 2] = kInfinity;
    values[5 * size + 4] = std::numeric_limits<double>::quiet_NaN();
    for (const int64_t count : {1, 4, 6}) expect_same(Array::of({6, length}, values), count);
  }
}

TEST_F(CudaTopLogSoftmax, OfAProduct) {
  for (const bool with_bias : {false, true}) {
    test::expect_same_on_both(
        with_bias ? "with bias" : "without bias",
        {test::random_array({70, 3}, 1), test::random_array({3, 37}, 2),
         with_bias ? test::random_array({37}, 3) : Array()},
        [&](auto on, const Place& place, const std::vector<Array>& in) {
          Array values = place.empty({70, 4}), indices = place.empty({70, 4}, kInt32);
          backend::linear_top_log_softmax(on, values, indices, in[0], in[1], in[2]);
          return std::vector<Array>{values, indices};
        });
  }
}

}  // namespace
}  // namespace gs
