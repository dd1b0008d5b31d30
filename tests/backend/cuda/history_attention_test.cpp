#include "framework/backend/history_attention.h"

#include <gtest/gtest.h>

#include "tests/backend/cuda/both_devices.h"

namespace gs {
namespace {

using test::Place;

class CudaHistoryAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

// Token t has t % 3 + 1 rows; their tables are beyond what one launch stores where there are many.
void expect_same(int64_t queries, int64_t tokens, int64_t heads, int64_t width,
                 int64_t value_width) {
  std::vector<Array> inputs{test::random_array({queries, heads * width}, 1)};
  std::vector<int32_t> rows(static_cast<size_t>(queries * tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const int64_t stored = t % 3 + 1;
    inputs.push_back(test::random_array({stored, heads * width}, static_cast<uint64_t>(t) + 2));
    inputs.push_back(
        test::random_array({stored, heads * value_width}, static_cast<uint64_t>(t) + 999));
    for (int64_t r = 0; r < queries; ++r)
      rows[static_cast<size_t>(r * tokens + t)] = static_cast<int32_t>((r * 7 + t * 5) % stored);
  }
  test::expect_same_on_both(
      fmt::format("{} queries, {} tokens, {} heads of {} and {}", queries, tokens, heads, width,
                  value_width),
      inputs, [&](auto on, const Place& place, const std::vector<Array>& in) {
        std::vector<Array> keys, values;
        for (size_t i = 1; i < in.size(); i += 2) {
          keys.push_back(in[i]);
          values.push_back(in[i + 1]);
        }
        Array output = place.empty({queries, heads * value_width});
        backend::history_attention(on, output, in[0], {keys, values, rows, heads});
        return std::vector<Array>{output};
      });
}

TEST_F(CudaHistoryAttention, AgreesAroundTheEdgesOfWarps) {
  for (const int64_t tokens : {1, 31, 32, 33, 65}) expect_same(3, tokens, 2, 8, 8);
  for (const int64_t width : {1, 15, 31, 32, 33, 64, 65, 129}) expect_same(2, 5, 3, width, width);
  expect_same(2, 5, 1, 70, 3);
  expect_same(2, 5, 2, 3, 70);
  expect_same(1, 3, 1, 1, 1);
  expect_same(0, 3, 2, 4, 4);
  expect_same(3, 3, 2, 4, 0);
}

// Tables of 240 bytes, of 6 KB (several stores) and of 20 KB (one copy).
TEST_F(CudaHistoryAttention, TablesOfAnySizeArrive) {
  for (const int64_t queries : {1, 140, 480}) expect_same(queries, 10, 1, 2, 2);
}

}  // namespace
}  // namespace gs
