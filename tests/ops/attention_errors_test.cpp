// What attention refuses, and in which words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/attention.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

constexpr auto dense = scaled_dot_product_attention;

// The message, without the name of the operation that it starts with.
std::string dense_error(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options = {}) {
  const std::string prefix = "scaled_dot_product_attention: ";
  const std::string message = error_of([&] { dense(query, key, value, options); });
  EXPECT_EQ(message.substr(0, prefix.size()), prefix);
  return message.substr(std::min(prefix.size(), message.size()));
}
Tensor zeros(const Shape& shape, DType dtype = kFloat32) {
  return Tensor(Array::zeros(shape, dtype));
}

TEST(AttentionErrors, RefusesOperandsThatDoNotFit) {
  const Tensor q = zeros({2, 3, 4}), k = zeros({2, 5, 4});
  EXPECT_EQ(dense_error(q, k, q), "lengths of key and value differ, got 5 and 3");
  EXPECT_EQ(dense_error(q, zeros({2, 5, 6}), k), "widths of query and key differ, got 4 and 6");
  EXPECT_EQ(dense_error(q, zeros({1, 5, 4}), zeros({2, 5, 4})),

            "batch sizes of query, key and value differ, got 2, 1 and 2");
  EXPECT_EQ(dense_error(zeros({3, 4}), k, k),

            "query, key and value need 3 dimensions, got [3, 4], [2, 5, 4] and [2, 5, 4]");
  EXPECT_EQ(dense_error(q, zeros({2, 5, 4}, kFloat64), k),

            "query, key and value must have one type, got float32, float64 and float32; cast "
            "them");
  EXPECT_EQ(dense_error(zeros({2, 3, 4}, kInt32), k, k),
            "needs float32 or float64, got int32; cast it first");
  EXPECT_EQ(dense_error(q, Tensor(), k), "query, key and value are needed, one is undefined");
}

// pytorch/pytorch#106700
TEST(AttentionErrors, RefusesHeadsThatDoNotDivideTheWidth) {
  const Tensor x = zeros({1, 3, 8}), y = zeros({1, 3, 6}), z = zeros({1, 3, 0});
  EXPECT_EQ(dense_error(x, x, x, {.heads = 0}),
            "at least 1 head is needed, got 0 for a width of 8");
  EXPECT_EQ(dense_error(x, x, x, {.heads = -2}),
            "at least 1 head is needed, got -2 for a width of 8");
  EXPECT_EQ(dense_error(z, z, z, {.heads = 0}),
            "at least 1 head is needed, got 0 for a width of 0");
  EXPECT_EQ(dense_error(y, y, y, {.heads = 4}),

            "heads must divide the widths, got 4 heads for widths 6 and 6");
  EXPECT_EQ(dense_error(x, x, y, {.heads = 4}),

            "heads must divide the widths, got 4 heads for widths 8 and 6");
  // A width of 0 scores every key alike.
  const Tensor value = random_tensor<float>({1, 3, 2}, 1);
  const std::vector<double> v = value.values<double>();
  test::expect_near(dense(z, z, value, {}).output,
                    {(v[0] + v[2] + v[4]) / 3, (v[1] + v[3] + v[5]) / 3, (v[0] + v[2] + v[4]) / 3,
                     (v[1] + v[3] + v[5]) / 3, (v[0] + v[2] + v[4]) / 3, (v[1] + v[3] + v[5]) / 3},
                    1e-6);
}

// pytorch/pytorch#21518
TEST(AttentionErrors, RefusesMasksThatAreNumbers) {
  const Tensor x = zeros({1, 3, 2});
  const Tensor mask = Tensor::of<float>({3}, {1, 0, 0});
  EXPECT_EQ(dense_error(x, x, x, {.mask = mask}),

            "mask must be bool, true = may attend, got float32; give numbers to add as scores");
  EXPECT_EQ(dense_error(x, x, x, {.scores = mask}),

            "scores are added, but hold only zeros and ones, got [3]; use mask, bool, where "
            "true may attend");
  EXPECT_EQ(dense_error(x, x, x, {.mask = zeros({3}, kInt32)}),

            "mask must be bool, true = may attend, got int32; give numbers to add as scores");
  EXPECT_EQ(dense_error(x, x, x, {.scores = zeros({3}, kFloat64)}),
            "scores must be float32 on cpu, got float64 on cpu");
  // A parameter, and scores that block nothing.
  Tensor parameter = Tensor(mask.value()).set_needs_grad();
  test::expect_near(dense(x, x, x, {.scores = parameter, .return_weights = true}).weights,
                    {0.5761168848, 0.2119415576, 0.2119415576, 0.5761168848, 0.2119415576,
                     0.2119415576, 0.5761168848, 0.2119415576, 0.2119415576},
                    1e-6);
  EXPECT_EQ(dense(x, x, x, {.scores = zeros({3, 3})}).output.shape(), x.shape());
}

TEST(AttentionErrors, RefusesOptionsThatDoNotFit) {
  const Tensor x = zeros({2, 3, 4});
  EXPECT_EQ(dense_error(x, x, x, {.mask = zeros({2, 3}, kBool)}),

            "mask must broadcast to (B, H, T, S), got [2, 3] for [2, 1, 3, 3]");
  EXPECT_EQ(dense_error(x, x, x, {.scores = zeros({1, 2, 1, 3, 3})}),

            "scores must broadcast to (B, H, T, S), got [1, 2, 1, 3, 3] for [2, 1, 3, 3]");
  for (const double dropout : {-0.1, 1.0, static_cast<double>(NAN)})
    EXPECT_EQ(dense_error(x, x, x, {.dropout = dropout}),
              fmt::format("dropout must be in [0, 1), got {}", dropout));
  EXPECT_EQ(dense_error(x, x, x, {.scale = INFINITY}), "scale must be finite, got inf");
  EXPECT_EQ(dense_error(x, x, x, {.key_lengths = {3}}),

            "key_lengths must have one entry a sequence, got 1 for 2 sequences");
  EXPECT_EQ(dense_error(x, x, x, {.key_lengths = {3, 4}}),

            "key_lengths must be between 0 and the number of keys, 3, got 4 at 1");
  EXPECT_EQ(dense_error(x, x, x, {.key_lengths = {-1, 3}}),

            "key_lengths must be between 0 and the number of keys, 3, got -1 at 0");
}

}  // namespace
}  // namespace gs
