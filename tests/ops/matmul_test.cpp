#include "framework/ops/matmul.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/tensor/gradcheck.h"
#include "tests/support/support.h"

namespace gs {
namespace {

Tensor numbers(const Shape& shape, int seed) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i) * 1.7 + seed);
  return Tensor::of<double>(shape, values);
}

TEST(Matmul, MultipliesBatchesThatBroadcast) {
  // (2, 1, 3, 4) x (5, 4, 2) -> (2, 5, 3, 2)
  const Tensor a = numbers({2, 1, 3, 4}, 1), b = numbers({5, 4, 2}, 2);
  const Tensor y = matmul(a, b);
  ASSERT_EQ(y.shape(), Shape({2, 5, 3, 2}));
  const double* pa = a.value().data<double>();
  const double* pb = b.value().data<double>();
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t c = 0; c < 2; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < 4; ++k) sum += pa[i * 12 + r * 4 + k] * pb[j * 8 + k * 2 + c];
          EXPECT_NEAR(y.value().data<double>()[((i * 5 + j) * 3 + r) * 2 + c], sum, 1e-14);
        }
      }
    }
  }
}

TEST(Matmul, TransposedOperandsAreReadInPlace) {
  const Tensor a = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
               b = Tensor::of<float>({2, 3}, {1, 0, 2, 0, 1, 1});
  EXPECT_EQ(matmul(a, b, {.transpose_b = true}).values<float>(),
            (std::vector<float>{7, 5, 16, 11}));
  EXPECT_EQ(matmul(a, b, {.transpose_a = true}).values<float>(),
            (std::vector<float>{1, 4, 6, 2, 5, 9, 3, 6, 12}));
}

TEST(Matmul, GradientsAreRightInAllForms) {
  for (int form = 0; form < 4; ++form) {
    const MatmulOptions options{.transpose_a = (form & 1) != 0, .transpose_b = (form & 2) != 0};
    const auto product = [&](const std::vector<Tensor>& in) {
      return matmul(in[0], in[1], options);
    };
    const auto a = [&](std::vector<int64_t> batch) {
      batch.insert(batch.end(), {options.transpose_a ? 4 : 3, options.transpose_a ? 3 : 4});
      return numbers(Shape(batch), 1);
    };
    const auto b = [&](std::vector<int64_t> batch) {
      batch.insert(batch.end(), {options.transpose_b ? 5 : 4, options.transpose_b ? 4 : 5});
      return numbers(Shape(batch), 2);
    };
    for (const auto& inputs : {std::vector<Tensor>{a({}), b({})},
                               {a({3}), b({3})},
                               {a({2, 1}), b({3})},
                               {a({2, 3}), b({})},
                               {a({}), b({2})},
                               {a({0}), b({})}}) {
      const GradcheckResult result = gradcheck(product, inputs);
      EXPECT_TRUE(result.passed) << result.message;
    }
  }
}

// pytorch/pytorch#31421, apache/tvm#19578: an inner size of 0 gives zeros.
TEST(Matmul, InnerSizeZeroGivesZeros) {
  const Tensor y = matmul(numbers({2, 0}, 1), numbers({0, 3}, 1));
  EXPECT_EQ(y.values<double>(), std::vector<double>(6, 0.0));
  const Tensor z = matmul(numbers({3, 2, 0}, 1), numbers({3, 0, 3}, 1));
  EXPECT_EQ(z.shape(), Shape({3, 2, 3}));
  EXPECT_EQ(z.values<double>(), std::vector<double>(18, 0.0));
}

TEST(Matmul, RefusesSizesThatDoNotMeet) {
  EXPECT_EQ(test::error_of([] {
              matmul(numbers({32, 512}, 1), numbers({256, 512}, 1));
            }),
            "matmul: inner sizes differ, got [32, 512] and [256, 512]; transpose the second?");
  EXPECT_EQ(test::error_of([] {
              matmul(numbers({2, 3, 4}, 1), numbers({3, 4, 5}, 1));
            }),
            "matmul: shapes do not broadcast, got [2] and [3]");
  EXPECT_EQ(test::error_of([] {
              matmul(numbers({3}, 1), numbers({3, 2}, 1));
            }),
            "matmul: needs at least two dimensions each, got [3] and [3, 2]; unsqueeze a vector");
}

}  // namespace
}  // namespace gs
