#include "framework/backend/reduce.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/backend/sum_to.h"
#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Around the sizes where warps, blocks and pieces begin.
const std::vector<Rows> kRows = {
    {5, 1, 1},    {3, 31, 1},   {70, 2, 1},   {2, 32, 1}, {2, 33, 1},   {1, 1023, 1}, {2, 1024, 1},
    {2, 1025, 1}, {1, 9001, 1}, {1, 8192, 1}, {3, 5, 2},  {2, 70, 31},  {1, 9, 33},   {1, 300, 5},
    {2, 3, 257},  {3, 0, 1},    {2, 0, 3},    {0, 4, 1},  {1, 129, 32},
};

Array numbers(Rows rows) { return test::random_array({rows.outer, rows.length, rows.inner}, 1); }
Array of_rows(Rows rows) { return test::random_array({rows.outer, rows.inner}, 2); }

using CudaReduce = test::CudaTest;

std::string name_of(Rows rows) {
  return fmt::format("rows ({}, {}, {})", rows.outer, rows.length, rows.inner);
}

TEST_F(CudaReduce, SumsAndVariances) {
  for (const Rows rows : kRows) {
    test::expect_same_on_both(
        name_of(rows), {numbers(rows), of_rows(rows)},
        [&](auto on, const Place& place, const std::vector<Array>& in) {
          Array sum = place.empty({rows.count()}), variance = place.empty({rows.count()});
          Array mean = place.empty({rows.count()}, kFloat64), dx = place.empty(in[0].shape());
          backend::sum(on, sum, in[0], rows, 3);
          backend::variance(on, variance, mean, in[0], rows, 7);
          backend::variance_backward(on, dx, in[1], in[0], mean, rows, 7);
          return std::vector<Array>{sum, variance, mean, dx};
        });
  }
}

TEST_F(CudaReduce, ExtremaAndTheirPlaces) {
  for (const Rows rows : kRows) {
    if (rows.length == 0) continue;
    test::expect_same_on_both(
        name_of(rows), {numbers(rows), of_rows(rows)},
        [&](auto on, const Place& place, const std::vector<Array>& in) {
          Array max = place.empty({rows.count()}), min = place.empty({rows.count()});
          Array dmax = place.empty(in[0].shape()), at = place.empty({rows.count()}, kInt32);
          backend::max(on, max, in[0], rows);
          backend::min(on, min, in[0], rows);
          backend::argmax(on, at, in[0], rows);
          backend::extremum_backward(on, dmax, in[1], in[0], max, rows);
          return std::vector<Array>{max, min, at, dmax};
        });
  }
}

TEST_F(CudaReduce, Logsumexps) {
  for (const Rows rows : kRows) {
    test::expect_same_on_both(name_of(rows), {numbers(rows), of_rows(rows)},
                              [&](auto on, const Place& place, const std::vector<Array>& in) {
                                Array y = place.empty({rows.count()});
                                Array dx = place.empty(in[0].shape());
                                backend::logsumexp(on, y, in[0], rows);
                                backend::logsumexp_backward(on, dx, in[1], in[0], y, rows);
                                return std::vector<Array>{y, dx};
                              });
  }
}

// Ties, NaN before and after larger numbers, infinities; dense and side by side, in one piece and
// in several.
TEST_F(CudaReduce, TiesInfinitiesAndNaN) {
  for (const int64_t inner : {1, 3}) {
    for (const int64_t length : {4, 33, inner == 1 ? 4500 : 200}) {
      const Rows rows{6, length, inner};
      std::vector<double> values(static_cast<size_t>(rows.outer * length * inner), -1);
      const auto at = [&](int64_t o, int64_t l, int64_t i) -> double& {
        return values[static_cast<size_t>((o * length + l) * inner + i)];
      };
      for (int64_t i = 0; i < inner; ++i) {
        at(0, 1, i) = at(0, length - 1, i) = 2;
        at(1, 1, i) = 5, at(1, 2, i) = kNaN, at(1, length - 1, i) = kNaN;
        for (int64_t l = 0; l < length; ++l) at(2, l, i) = -kInfinity;
        at(3, 2, i) = at(3, 3, i) = kInfinity;
        for (int64_t l = 0; l < length; ++l) at(4, l, i) = l == i ? -1e30 : -kInfinity;
        at(5, 0, i) = kNaN, at(5, 1, i) = kInfinity;
      }
      test::expect_same_on_both(
          name_of(rows), {Array::of({rows.outer, length, inner}, values), of_rows(rows)},
          [&](auto on, const Place& place, const std::vector<Array>& in) {
            std::vector<Array> y;
            for (int i = 0; i < 4; ++i) y.push_back(place.empty({rows.count()}));
            Array at_max = place.empty({rows.count()}, kInt32);
            Array dmax = place.empty(in[0].shape()), dlog = place.empty(in[0].shape());
            backend::sum(on, y[0], in[0], rows);
            backend::max(on, y[1], in[0], rows);
            backend::min(on, y[2], in[0], rows);
            backend::logsumexp(on, y[3], in[0], rows);
            backend::argmax(on, at_max, in[0], rows);
            backend::extremum_backward(on, dmax, in[1], in[0], y[1], rows);
            backend::logsumexp_backward(on, dlog, in[1], in[0], y[3], rows);
            return std::vector<Array>{y[0], y[1], y[2], y[3], at_max, dmax, dlog};
          });
    }
  }
}

// 257 is no bfloat16, 771 becomes 772.
TEST_F(CudaReduce, SumsOverSeveralDimensionsRoundOnce) {
  const Array x = Array::full({257, 2, 3}, 1, kBFloat16, Device::cuda());
  Array y = Array::empty({1, 2, 1}, kBFloat16, Device::cuda());
  backend::sum_to(Cuda{}, y, x);
  EXPECT_EQ(y.values<float>(), (std::vector<float>{772, 772}));
}

}  // namespace
}  // namespace gs
