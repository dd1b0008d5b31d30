#include "framework/backend/softmax.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<Rows> kRows = {
    {5, 1, 1},    {3, 31, 1},   {70, 2, 1},   {2, 32, 1}, {2, 33, 1},  {1, 1023, 1},
    {2, 1024, 1}, {2, 1025, 1}, {1, 2048, 1}, {3, 5, 2},  {2, 70, 31}, {1, 9, 33},
    {1, 300, 5},  {2, 3, 257},  {3, 0, 1},    {0, 4, 1},
};

using CudaSoftmax = test::CudaTest;

void expect_softmax(Rows rows, const Array& x) {
  const Array dy = test::random_array(x.shape(), 2);
  test::expect_same_on_both(fmt::format("rows ({}, {}, {})", rows.outer, rows.length, rows.inner),
                            {x, dy},
                            [&](auto on, const Place& place, const std::vector<Array>& in) {
                              Array y = place.empty(x.shape()), log_y = in[0].clone();
                              Array dx = place.empty(x.shape()), log_dx = place.empty(x.shape());
                              backend::softmax(on, y, in[0], rows);
                              backend::softmax_backward(on, dx, y, in[1], rows);
                              backend::log_softmax(on, log_y, log_y, rows);  // in place
                              backend::log_softmax_backward(on, log_dx, log_y, in[1], rows);
                              return std::vector<Array>{y, dx, log_y, log_dx};
                            });
}

TEST_F(CudaSoftmax, OddSizes) {
  for (const Rows rows : kRows)
    expect_softmax(rows, test::random_array({rows.outer, rows.length, rows.inner}, 1));
}

TEST_F(CudaSoftmax, InfinitiesAndNaN) {
  for (const int64_t length : {3, 40, 1200}) {
    for (const int64_t inner : {1, 2}) {
      std::vector<double> values(static_cast<size_t>(5 * length * inner), 0.5);
      const auto at = [&](int64_t o, int64_t l, int64_t i) -> double& {
        return values[static_cast<size_t>((o * length + l) * inner + i)];
      };
      for (int64_t i = 0; i < inner; ++i) {
        for (int64_t l = 0; l < length; ++l) at(0, l, i) = -kInfinity;
        for (int64_t l = 1; l < length; ++l) at(1, l, i) = -kInfinity;
        at(2, 1, i) = kInfinity;
        at(3, 2, i) = std::numeric_limits<double>::quiet_NaN();
        at(4, 0, i) = 1e30;
      }
      expect_softmax({5, length, inner}, Array::of({5, length, inner}, values));
    }
  }
}

}  // namespace
}  // namespace gs
