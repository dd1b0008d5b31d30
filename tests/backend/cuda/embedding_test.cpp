#include "framework/backend/embedding.h"

#include <gtest/gtest.h>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using test::Place;
using CudaEmbedding = test::CudaTest;

struct Sizes {
  int64_t rows, width, count;
};

// Packs and single elements, fewer and more indices than a block of threads has, ranges of rows of
// several blocks, more rows than 512 blocks of 64 have, rows without an index, no indices, no
// columns.
const std::vector<Sizes> kSizes = {{1, 1, 1},      {5, 3, 40},   {7, 8, 257},
                                   {64, 16, 31},   {65, 4, 300}, {300, 2, 1000},
                                   {33000, 1, 90}, {4, 6, 0},    {6, 0, 9}};

void expect_same(Sizes sizes, const Array& indices, std::optional<int64_t> padding) {
  const Shape table{sizes.rows, sizes.width};
  test::expect_same_on_both(
      fmt::format("({}, {}), {} indices", sizes.rows, sizes.width, sizes.count),
      {test::random_array(table, 1), test::random_array({sizes.count, sizes.width}, 2), indices},
      [&](auto on, const Place& place, const std::vector<Array>& in) {
        Array y = place.empty({sizes.count, sizes.width}), dweight = place.empty(table);
        Array added = in[0].clone();
        backend::embedding(on, y, in[0], in[2]);
        backend::embedding_backward(on, dweight, in[1], in[2], padding);
        backend::embedding_backward(on, added, in[1], in[2], padding, true);
        return std::vector<Array>{y, dweight, added};
      },
      1e-6);
}

TEST_F(CudaEmbedding, RowsAndGradients) {
  for (const Sizes sizes : kSizes) {
    const Array indices = test::random_indices({sizes.count}, sizes.rows, 3);
    expect_same(sizes, indices, std::nullopt);
    expect_same(sizes, indices, sizes.rows / 2);
  }
}

// All positions belong to one row, first, last or in the middle of the block's range.
TEST_F(CudaEmbedding, OneRowTakesAll) {
  for (const int32_t row : {0, 63, 64, 130}) {
    const Array indices = Array::of({600}, std::vector<int32_t>(600, row));
    expect_same({131, 3, 600}, indices, std::nullopt);
    expect_same({131, 3, 600}, indices, row);
  }
}

// In float32 the sum depends on the order of its terms, in double precision of these it does not
// round: 2^24 + 1 - 2^24 + 1 = 2.
TEST_F(CudaEmbedding, SumsInDoublePrecision) {
  const Array dy =
      Array::of({4, 1}, std::vector<float>{0x1p24F, 1, -0x1p24F, 1}).to(Device::cuda());
  const Array indices = Array::of({4}, std::vector<int32_t>{1, 1, 1, 1}).to(Device::cuda());
  Array dweight = Array::empty({2, 1}, kFloat32, Device::cuda());
  backend::embedding_backward(Cuda{}, dweight, dy, indices, std::nullopt);
  EXPECT_EQ(dweight.to(Device::cpu()).values<float>(), (std::vector<float>{0, 2}));
}

}  // namespace
}  // namespace gs
