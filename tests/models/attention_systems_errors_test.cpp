#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/backend/memory.h"
#include "models/attention_systems.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;
using testing::HasSubstr;

NumpyFormAttention numpy_form() {
  MersenneTwister numbers(42);
  return NumpyFormAttention(6, 2, numbers);
}

TEST(AttentionSystems, RefusesInputsThatDoNotFitTogether) {
  const PytorchFormAttention pytorch(8, 2);
  const KerasFormAttention keras(8, 2);
  const auto x = [](const Shape& shape) { return random_tensor<float>(shape, 1); };
  EXPECT_EQ(error_of([&] {
              pytorch(x({1, 2, 8}), x({1, 5, 8}), x({1, 2, 8}));
            }),
            "PyTorch-form attention: key and value must have the same length, got 5 and 2; is the "
            "query in the place of one of them?");
  EXPECT_EQ(error_of([&] {
              keras(x({1, 2, 8}), x({1, 5, 8}), x({1, 5, 8}));
            }),
            "Keras-form attention: key and value must have the same length, got 5 and 2; is the "
            "query in the place of one of them?");
  EXPECT_EQ(error_of([&] {
              pytorch(x({1, 2, 8}), x({3, 2, 8}), x({3, 2, 8}));
            }),
            "PyTorch-form attention: query, key and value must have the same batch size, got 1, 3 "
            "and 3");
  EXPECT_THAT(
      error_of([&] {
        keras(x({2, 8}), x({2, 8}), x({2, 8}));
      }),
      HasSubstr("Keras-form attention: query, key and value must be (B, T, C), got [2, 8]"));
  EXPECT_NE(error_of([&] { pytorch(x({1, 2, 6}), x({1, 2, 6}), x({1, 2, 6})); }), "");
  EXPECT_NE(error_of([&] {
              pytorch(x({1, 2, 8}), x({1, 2, 8}), x({1, 2, 8}),
                      Tensor::of<int32_t>({1, 1, 2, 3}, {1, 1, 1, 1, 1, 1}));
            }),
            "");
  EXPECT_EQ(error_of([] { numpy_form()(Matrix(3, 5)); }),
            "NumPy-form attention: x must have 6 columns, got 5");
  EXPECT_EQ(error_of([] {
              Matrix(2, 2, {1, 2, 3});
            }),
            "Matrix: the numbers do not fill it, got 3 for 2 rows of 2");
}

// pytorch/pytorch#106700, #186237, #191325
TEST(AttentionSystems, RefusesHeadsThatDoNotDivideTheWidth) {
  const int64_t bytes = memory_figures().live;
  MersenneTwister numbers(1);
  for (const std::pair<int64_t, int64_t>& sizes :
       {std::pair<int64_t, int64_t>{8, 0}, {0, 0}, {6, 4}, {8, -2}, {0, 2}, {-8, 2}}) {
    const int64_t width = sizes.first, heads = sizes.second;
    const std::string expected = fmt::format(
        "attention: the width must be a multiple of the heads, got width {} and {} heads", width,
        heads);
    EXPECT_EQ(error_of([&] { PytorchFormAttention(width, heads); }), "PyTorch-form " + expected);
    EXPECT_EQ(error_of([&] { KerasFormAttention(width, heads); }), "Keras-form " + expected);
    EXPECT_EQ(error_of([&] { NumpyFormAttention(width, heads, numbers); }),
              "NumPy-form " + expected);
  }
  EXPECT_EQ(memory_figures().live, bytes);
}

}  // namespace
}  // namespace gs
