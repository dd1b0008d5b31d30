#include "framework/backend/indexing.h"

#include <gtest/gtest.h>

#include "framework/backend/copy.h"
#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;
using CudaIndexing = test::CudaTest;

struct Sizes {
  Rows rows;
  int64_t count;
};

const std::vector<Sizes> kSizes = {
    {{1, 1, 1}, 1},  {{3, 5, 1}, 33}, {{2, 40, 1}, 70},  {{40, 3, 1}, 2}, {{2, 6, 8}, 5},
    {{3, 4, 33}, 9}, {{1, 70, 3}, 4}, {{2, 3, 257}, 31}, {{2, 5, 2}, 0},
};

// Both functions by indices of that shape.
template <typename Forward, typename Backward>
void expect_same(Sizes sizes, const Shape& shape, Forward forward, Backward backward) {
  const Rows rows = sizes.rows;
  const Shape all{rows.outer, rows.length, rows.inner};
  const Shape taken{rows.outer, sizes.count, rows.inner};
  test::expect_same_on_both(
      fmt::format("rows ({}, {}, {}), {} indices", rows.outer, rows.length, rows.inner,
                  sizes.count),
      {test::random_array(all, 1), test::random_array(taken, 2),
       test::random_indices(shape, rows.length, 3)},
      [&](auto on, const Place& place, const std::vector<Array>& in) {
        Array y = place.empty(taken), dx = place.empty(all);
        forward(on, y, in[0], in[2], rows);
        backward(on, dx, in[1], in[2], rows);
        return std::vector<Array>{y, dx};
      },
      1e-6);
}

TEST_F(CudaIndexing, SelectsAndGradients) {
  for (const Sizes sizes : kSizes) {
    expect_same(
        sizes, {sizes.count}, [](auto... each) { backend::index_select(each...); },
        [](auto... each) { backend::index_select_backward(each...); });
  }
}

TEST_F(CudaIndexing, GathersAndGradients) {
  for (const Sizes sizes : kSizes) {
    expect_same(
        sizes, {sizes.rows.outer, sizes.count, sizes.rows.inner},
        [](auto... each) { backend::gather(each...); },
        [](auto... each) { backend::gather_backward(each...); });
  }
}

// Of bool, int32 and one byte a row, too.
TEST_F(CudaIndexing, OtherTypes) {
  for (const DType dtype : {kBool, kInt32}) {
    const Rows rows{2, 3, 5};
    const Array x = test::random_indices({2, 3, 5}, 2, 1).to(dtype);
    const Array indices = test::random_indices({4}, 3, 2);
    const Array places = test::random_indices({2, 4, 5}, 3, 3);
    const auto run = [&](auto on, Device device) {
      Array selected = Array::empty({2, 4, 5}, dtype, device);
      Array gathered = Array::empty({2, 4, 5}, dtype, device);
      backend::index_select(on, selected, x.to(device), indices.to(device), rows);
      backend::gather(on, gathered, x.to(device), places.to(device), rows);
      return std::vector<Array>{selected, gathered};
    };
    const std::vector<Array> expected = run(Cpu{}, Device::cpu());
    const std::vector<Array> actual = run(Cuda{}, Device::cuda());
    for (size_t i = 0; i < expected.size(); ++i)
      test::expect_near(actual[i], expected[i], 0, fmt::format("{}, result {}", dtype, i));
  }
}

TEST_F(CudaIndexing, OneHot) {
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16, kInt32, kBool}) {
    const Array indices = Array::of({3}, std::vector<int32_t>{2, 0, 1}).to(Device::cuda());
    Array y = Array::zeros({3, 4}, dtype, Device::cuda());
    backend::one_hot(Cuda{}, y, indices, 4);
    EXPECT_EQ(test::numbers_of(y), (std::vector<double>{0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0}))
        << name_of(dtype);
  }
}

}  // namespace
}  // namespace gs
