#include "framework/nn/embedding.h"

#include <gtest/gtest.h>

#include "framework/optim/adam.h"
#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_module;
using test::error_of;
using test::expect_pytorch_module;
using test::FixtureInputs;

Tensor some_indices() { return Tensor::of<int32_t>({2, 3}, {4, 0, 4, 1, 2, 3}); }

TEST(Embedding, AgreesWithPyTorch) {
  nn::Embedding plain(6, 5), padded(6, 5, {.padding_index = 0});
  expect_pytorch_module("modules", "embedding", plain, [&](const FixtureInputs& inputs) {
    return std::map<std::string, Tensor>{{"output", plain(inputs["indices"])}};
  });
  expect_pytorch_module("modules", "embedding_padding", padded, [&](const FixtureInputs& inputs) {
    return std::map<std::string, Tensor>{{"output", padded(inputs["indices"])}};
  });
}

TEST(Embedding, GradientsAreRight) {
  nn::Embedding embedding(6, 3);
  check_module(embedding, [&](const std::vector<Tensor>& x) { return embedding(x[0]); },
               {some_indices()});
}

TEST(Embedding, StartsWithVariance1OverTheWidth) {
  const nn::Embedding embedding(1000, 64, {.padding_index = 3});
  double sum = 0;
  const std::vector<double> values = embedding.weight->values<double>();
  for (const double value : values) sum += value * value;
  EXPECT_NEAR(sum / (999 * 64), 1.0 / 64, 0.02 / 64);
  for (size_t i = 3 * 64; i < 4 * 64; ++i) EXPECT_EQ(values[i], 0);
}

// pytorch/pytorch#26302, #6411, #1812
TEST(Embedding, ThePaddingRowIsNeverTrained) {
  nn::Embedding embedding(5, 2, {.padding_index = 0});
  EXPECT_FALSE(embedding.weight.decays());
  // Other initial values are the user's affair: they stay as they are.
  embedding.weight->assign(Tensor::of<float>({5, 2}, {7, -7, 1, 2, 3, 4, 5, 6, 8, 9}));
  Adam optimizer(embedding, {.learning_rate = 0.5, .weight_decay = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor y = embedding(Tensor::of<int32_t>({4}, {0, 2, 0, 4}));
    EXPECT_EQ(y.values<float>()[0], 7);
    y.backward(Tensor::of<float>({4, 2}, {1, 1, 1, 1, 1, 1, 1, 1}));
    EXPECT_EQ(embedding.weight->gradient().values<float>(),
              (std::vector<float>{0, 0, 0, 0, 1, 1, 0, 0, 1, 1}));
    optimizer.step();
  }
  const std::vector<float> after = embedding.weight->values<float>();
  EXPECT_EQ(after[0], 7);
  EXPECT_EQ(after[1], -7);
  EXPECT_NEAR(after[4], 1.5, 1e-5);  // Adam moves by the learning rate
}

TEST(Embedding, WithoutPaddingDecays) { EXPECT_TRUE(nn::Embedding(5, 2).weight.decays()); }

TEST(Embedding, TakesIndicesOfAnyShape) {
  const nn::Embedding embedding(5, 2);
  EXPECT_EQ(embedding(Tensor::of<int32_t>({}, {4})).shape(), Shape({2}));
  EXPECT_EQ(embedding(Tensor::of<int32_t>({2, 0}, {})).shape(), Shape({2, 0, 2}));
}

TEST(Embedding, RefusesWhatIsOutside) {
  const nn::Embedding embedding(5, 2);
  EXPECT_EQ(error_of([&] {
              embedding(Tensor::of<int32_t>({2}, {0, 5}));
            }),
            "embedding: index 5 at position 1 is outside 0..4");
  EXPECT_EQ(error_of([&] { embedding(Tensor::of<int32_t>({1}, {-1})); }),
            "embedding: index -1 at position 0 is outside 0..4");
  EXPECT_EQ(error_of([&] { embedding(Tensor::of<float>({1}, {1})); }),
            "embedding: indices must be int32, got float32; cast them");
  EXPECT_EQ(error_of([] { nn::Embedding(5, 2, {.padding_index = 5}); }),
            "embedding: the padding index must be 0 to 4, got 5");
  EXPECT_EQ(error_of([] { nn::Embedding(5, 2, {.padding_index = -1}); }),
            "embedding: the padding index must be 0 to 4, got -1");
  EXPECT_EQ(error_of([] { nn::Embedding(5, 0); }),
            "embedding: needs a width of at least 1, got 5 entries of width 0");
}

}  // namespace
}  // namespace gs
