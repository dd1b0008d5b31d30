#include "framework/ops/embedding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/ops/arithmetic.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

Tensor indices_of(const Shape& shape, std::vector<int32_t> values) {
  return Tensor::of<int32_t>(shape, values);
}

TEST(Embedding, LooksUpRowsUnderAnyShape) {
  const Tensor weight = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor y = embedding(weight, indices_of({2, 2}, {2, 0, 2, 1}));
  EXPECT_EQ(y.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(y.values<float>(), (std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4}));
  const Tensor row = embedding(weight, indices_of({}, {1}));
  EXPECT_EQ(row.shape(), (Shape{2}));
  EXPECT_EQ(row.values<float>(), (std::vector<float>{3, 4}));
}

// tenstorrent/tt-metal#6232, tinygrad/tinygrad#16052, pytorch/pytorch#187682: repeated indices.
TEST(Embedding, AddsUpRepeatedIndices) {
  Tensor weight = Tensor::of<float>({4, 2}, std::vector<float>(8, 1));
  weight.set_needs_grad();
  embedding(weight, indices_of({4}, {0, 0, 0, 2}))
      .backward(Tensor::of<float>({4, 2}, std::vector<float>(8, 1)));
  EXPECT_EQ(weight.gradient().values<float>(), (std::vector<float>{3, 3, 0, 0, 1, 1, 0, 0}));
}

// A table that is used again: the second gradient is added to the first, padding and rows without
// uses stay.
TEST(Embedding, AddsToTheGradientOfOtherUses) {
  Tensor weight = Tensor::of<float>({4, 2}, std::vector<float>(8, 1));
  weight.set_needs_grad();
  const Tensor first = embedding(weight, indices_of({3}, {0, 1, 0}));
  const Tensor second = embedding(weight, indices_of({3}, {3, 0, 3}), {.padding_index = 0});
  (first + second).backward(Tensor::of<float>({3, 2}, {1, 2, 10, 20, 100, 200}));
  EXPECT_EQ(weight.gradient().values<float>(),
            (std::vector<float>{101, 202, 10, 20, 0, 0, 101, 202}));
}

// pytorch/pytorch#26302, #6411: the padding row was trained.
TEST(Embedding, PaddingRowIsReadButGetsNoGradient) {
  Tensor weight = Tensor::of<float>({4, 2}, {7, 8, 1, 1, 1, 1, 1, 1});
  weight.set_needs_grad();
  const Tensor y = embedding(weight, indices_of({4}, {0, 0, 0, 2}), {.padding_index = 0});
  EXPECT_EQ(y.values<float>(), (std::vector<float>{7, 8, 7, 8, 7, 8, 1, 1}));
  y.backward(Tensor::of<float>({4, 2}, {1, NAN, 1, 1, 1, 1, 2, 3}));
  EXPECT_EQ(weight.gradient().values<float>(), (std::vector<float>{0, 0, 0, 0, 2, 3, 0, 0}));
}

TEST(Embedding, GradientIsTheSameForAnyNumberOfThreads) {
  constexpr int64_t kRows = 500, kWidth = 70, kCount = 3000;
  const RandomStream stream{5, 0};
  std::vector<int32_t> indices;
  std::vector<float> upstream;
  for (uint64_t i = 0; i < kCount; ++i)  // small ones more often, as words are
    indices.push_back(static_cast<int32_t>(stream.words(i)[0] % kRows % (1 + i % kRows)));
  for (uint64_t i = 0; i < kCount * kWidth; ++i)
    upstream.push_back(unit_float(stream.words(i)[1]) - 0.3f);
  std::vector<double> expected(kRows * kWidth);
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t j = 0; j < kWidth; ++j)
      expected[static_cast<size_t>(indices[i]) * kWidth + j] += upstream[i * kWidth + j];
  }
  const int before = threads();
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    Tensor weight(Array::zeros({kRows, kWidth}, kFloat32));
    weight.set_needs_grad();
    embedding(weight, indices_of({kCount}, indices))
        .backward(Tensor::of<float>({kCount, kWidth}, upstream));
    const std::vector<float> gradient = weight.gradient().values<float>();
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(gradient[i], static_cast<float>(expected[i])) << i;
  }
  set_threads(before);
}

TEST(Embedding, PassesGradcheckInOddShapes) {
  const Tensor weight = Tensor::of<double>({3, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6});
  for (const Tensor& indices : {indices_of({7}, {0, 2, 2, 1, 2, 0, 2}), indices_of({1, 1}, {1}),
                                indices_of({0, 3}, {}), indices_of({}, {2})}) {
    const GradcheckResult result = gradcheck(
        [&](const std::vector<Tensor>& inputs) { return embedding(inputs[0], indices); }, {weight});
    EXPECT_TRUE(result.passed) << result.message;
    EXPECT_EQ(result.checked, 15);
  }
  Tensor narrow(Array::zeros({3, 0}, kFloat64));
  narrow.set_needs_grad();
  const Tensor y = embedding(narrow, indices_of({2}, {0, 2}));
  EXPECT_EQ(y.shape(), (Shape{2, 0}));
  y.backward(y.detach());
  EXPECT_EQ(narrow.gradient().shape(), (Shape{3, 0}));
}

TEST(Embedding, RefusesWhatItCannotLookUp) {
  const Tensor weight = Tensor::of<float>({3, 1}, {1, 2, 3});
  EXPECT_EQ(error_of([&] {
              embedding(weight, indices_of({2, 2}, {0, 2, 3, -1}));
            }),
            "embedding: index 3 at position 2 is outside 0..2");
  EXPECT_EQ(error_of([&] {
              embedding(weight, indices_of({2}, {0, -1}));
            }),
            "embedding: index -1 at position 1 is outside 0..2");
  std::vector<int32_t> late(5000, 1);
  late[4321] = INT32_MIN;
  EXPECT_EQ(error_of([&] { embedding(weight, indices_of({5000}, late)); }),
            "embedding: index -2147483648 at position 4321 is outside 0..2");
  EXPECT_EQ(error_of([&] { embedding(weight, indices_of({1}, {0}), {.padding_index = 3}); }),
            "embedding: padding_index 3 is outside 0..2");
  EXPECT_EQ(error_of([&] { embedding(weight, weight); }),
            "embedding: indices must be int32, got float32; cast them");
  EXPECT_EQ(error_of([&] { embedding(indices_of({1}, {0}), indices_of({1}, {0})); }),
            "embedding: weight must be (V, C) in float32 or float64, got [1] int32");
}

}  // namespace
}  // namespace gs
