// Attention's answers to what went wrong elsewhere.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "framework/ops/attention.h"
#include "tests/support/numbers.h"

namespace gs {
namespace {

using test::expect_near;
using test::random_tensor;

constexpr auto dense = scaled_dot_product_attention;

// Query, key and value of one head that is one wide, and scores that are given.
Tensor weights_of(const Tensor& scores, AttentionOptions options) {
  const Tensor zero(Array::zeros({1, scores.size(-2), 1}, scores.dtype()));
  const Tensor keys(Array::zeros({1, scores.size(-1), 1}, scores.dtype()));
  options.scores = scores;
  options.return_weights = true;
  return dense(zero, keys, keys, options).weights;
}

// pytorch/pytorch#41508, pytorch/pytorch#103963, ml-explore/mlx#2626
TEST(AttentionReports, AFullyMaskedQueryIsZeroAndHasNoGradient) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    std::vector<Tensor> in{Tensor::of<double>({1, 3, 2}, {1, 0, 0, 1, 1, 1}),
                           Tensor::of<double>({1, 3, 2}, {1, 2, 0, 1, 3, 0}),
                           Tensor::of<double>({1, 3, 2}, {1, 2, 3, 4, 5, 6})};
    for (Tensor& tensor : in) tensor = Tensor(tensor.value().to(dtype));
    for (Tensor& tensor : in) tensor.set_needs_grad();
    const Tensor mask =
        Tensor::of<bool>({3, 3}, {true, true, false, false, false, false, true, true, true});
    const Attention y = dense(in[0], in[1], in[2], {.mask = mask, .return_weights = true});
    y.output.backward(Tensor(Array::full({1, 3, 2}, 1, dtype)));
    const double tolerance = dtype == kFloat32 ? 1e-6 : 1e-9;
    expect_near(y.weights,
                {0.6697615493, 0.3302384507, 0, 0, 0, 0, 0.4458082741, 0.1083834518, 0.4458082741},
                tolerance);
    expect_near(y.output, {1.6604769013, 2.6604769013, 0, 0, 3, 4}, tolerance);
    expect_near(in[0].gradient(), {-0.6255943862, -0.6255943862, 0, 0, 2.5218724298, -2.5218724298},
                tolerance);
    expect_near(in[1].gradient(),
                {-1.8865306011, -1.2609362149, 0.6255943862, 0, 1.2609362149, 1.2609362149},
                tolerance);
    expect_near(
        in[2].gradient(),
        {1.1155698234, 1.1155698234, 0.4386219025, 0.4386219025, 0.4458082741, 0.4458082741},
        tolerance);
  }
}

// ml-explore/mlx#2626: adding -1e9 in float32 wipes the scores out and leaves uniform weights.
TEST(AttentionReports, ABlockedRowIsZeroHoweverItIsBlocked) {
  const std::vector<double> zeros(5);
  const Tensor scores = Tensor::of<float>({1, 5}, {0.3f, -0.2f, 0.1f, 0.5f, 0.9f});
  const Tensor infinite(Array::full({1, 5}, -INFINITY, kFloat32));
  expect_near(weights_of(scores, {.mask = Tensor(Array::zeros({1}, kBool))}), zeros, 0);
  expect_near(weights_of(scores, {.key_lengths = {0}}), zeros, 0);
  expect_near(weights_of(infinite, {}), zeros, 0);
}

// The TensorFlow tutorial's batch [0, 0, 0, 4, 5]: padding on the left and a causal mask.
TEST(AttentionReports, LeftPaddingSeesNothingOfTheFuture) {
  const Tensor padding = Tensor::of<bool>({5}, {false, false, false, true, true});
  std::vector<float> values = random_tensor<float>({1, 5, 4}, 1).values<float>();
  const AttentionOptions options{.heads = 2, .causal = true, .mask = padding};
  const auto run = [&] {
    const Tensor x = Tensor::of<float>({1, 5, 4}, values);
    return dense(x, x, x, options).output.values<float>();
  };
  const std::vector<float> before = run();
  for (size_t i = 12; i < 20; ++i) values[i] += 3;
  const std::vector<float> after = run();
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(before[i], 0) << i;
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(after[i], 0) << i;
  EXPECT_NE(before[12], after[12]);
}

// pytorch/pytorch#170400, pytorch/pytorch#120668, rasbt/LLMs-from-scratch#1061
TEST(AttentionReports, TrueMeansMayAttend) {
  const Tensor zeros(Array::zeros({3, 3}, kFloat32));
  const Tensor lower =
      Tensor::of<bool>({3, 3}, {true, false, false, true, true, false, true, true, true});
  const std::vector<double> expected{1, 0, 0, 0.5, 0.5, 0, 1 / 3.0, 1 / 3.0, 1 / 3.0};
  expect_near(weights_of(zeros, {.mask = lower}), expected, 1e-7);
  expect_near(weights_of(zeros, {.causal = true}), expected, 1e-7);
}

// ml-explore/mlx#2835, hyprstream/hyprstream#1521
TEST(AttentionReports, CausalMasksAlignAtTheLastKey) {
  expect_near(weights_of(Tensor(Array::zeros({2, 4}, kFloat32)), {.causal = true}),
              {1 / 3.0, 1 / 3.0, 1 / 3.0, 0, 0.25, 0.25, 0.25, 0.25}, 1e-7);
  // More queries than keys: the first ones come before any key.
  expect_near(weights_of(Tensor(Array::zeros({3, 2}, kFloat32)), {.causal = true}),
              {0, 0, 1, 0, 0.5, 0.5}, 0);
}

// pytorch/pytorch#42929, pytorch/pytorch#27968
TEST(AttentionReports, ReturnedWeightsAreThoseBeforeDropout) {
  for (int64_t length = 1; length <= 5; ++length) {
    const Tensor x = random_tensor<float>({4, length, 6}, 1);
    Generator generator(3);
    AttentionOptions options{.heads = 3, .dropout = 0.5, .generator = &generator};
    options.return_weights = true;
    const Attention plain = dense(x, x, x, options);
    EXPECT_EQ(generator.state().next_stream, 0u);
    options.training = true;
    const Attention dropped = dense(x, x, x, options);
    EXPECT_EQ(generator.state().next_stream, 1u);
    EXPECT_EQ(dropped.weights.values<float>(), plain.weights.values<float>());
    EXPECT_NE(dropped.output.values<float>(), plain.output.values<float>());
    const std::vector<double> weights = dropped.weights.values<double>();
    for (size_t row = 0; row < weights.size(); row += static_cast<size_t>(length)) {
      double sum = 0;
      for (size_t j = 0; j < static_cast<size_t>(length); ++j) sum += weights[row + j];
      EXPECT_NEAR(sum, 1, 1e-6);
    }
  }
}

// pytorch/pytorch#34537, facebookresearch/fairseq#3365
TEST(AttentionReports, WeightsAreGivenForEachHead) {
  const Tensor q = random_tensor<float>({2, 4, 6}, 1), k = random_tensor<float>({2, 5, 6}, 2);
  const Tensor weights = dense(q, k, k, {.heads = 3, .return_weights = true}).weights;
  ASSERT_EQ(weights.shape(), (Shape{2, 3, 4, 5}));
  // Head 1 of sequence 1 alone, columns 2 and 3.
  const auto columns = [](const Tensor& x) {
    const std::vector<float> values = x.values<float>();
    const int64_t length = x.size(1);
    std::vector<float> picked;
    for (int64_t i = length; i < 2 * length; ++i)
      picked.insert(picked.end(), {values[static_cast<size_t>(i * 6 + 2)],
                                   values[static_cast<size_t>(i * 6 + 3)]});
    return Tensor::of<float>({1, length, 2}, picked);
  };
  const Tensor alone = dense(columns(q), columns(k), columns(k), {.return_weights = true}).weights;
  const std::vector<float> all = weights.values<float>();
  EXPECT_EQ(std::vector<float>(all.begin() + 80, all.begin() + 100), alone.values<float>());
  EXPECT_FALSE(dense(q, k, k, {.heads = 3}).weights.defined());
}

// pytorch/pytorch#188765, sgl-project/sglang#34474
TEST(AttentionReports, EmptyBatchesQueriesAndKeysWork) {
  const std::vector<std::array<int64_t, 3>> cases{{0, 3, 3}, {2, 0, 3}, {2, 3, 0}};
  for (const auto& [batch, queries, keys] : cases) {
    for (const bool causal : {false, true}) {
      Tensor q = random_tensor<float>({batch, queries, 4}, 1).set_needs_grad();
      Tensor k = random_tensor<float>({batch, keys, 4}, 2).set_needs_grad();
      Tensor v = random_tensor<float>({batch, keys, 4}, 3).set_needs_grad();
      const Tensor mask(Array::full({batch, 1, queries, keys}, 1, kBool));
      const Attention y =
          dense(q, k, v, {.heads = 2, .causal = causal, .mask = mask, .return_weights = true});
      EXPECT_EQ(y.output.shape(), (Shape{batch, queries, 4}));
      EXPECT_EQ(y.weights.shape(), (Shape{batch, 2, queries, keys}));
      expect_near(y.output, std::vector<double>(static_cast<size_t>(batch * queries * 4)), 0);
      y.output.backward(Tensor(Array::full(y.output.shape(), 1, kFloat32)));
      for (const Tensor& x : {q, k, v}) {
        ASSERT_EQ(x.gradient().shape(), x.shape());
        expect_near(x.gradient(), std::vector<double>(static_cast<size_t>(x.elements())), 0);
      }
    }
  }
}

TEST(AttentionReports, OneKeyHasWeightOneAndNoGradientFlowsToItsScore) {
  Tensor q = random_tensor<float>({1, 1, 3}, 1).set_needs_grad();
  Tensor k = random_tensor<float>({1, 1, 3}, 2).set_needs_grad();
  Tensor v = random_tensor<float>({1, 1, 3}, 3).set_needs_grad();
  const Attention y = dense(q, k, v, {.return_weights = true});
  EXPECT_EQ(y.weights.item(), 1);
  EXPECT_EQ(y.output.values<float>(), v.values<float>());
  const Tensor upstream = random_tensor<float>({1, 1, 3}, 4);
  y.output.backward(upstream);
  EXPECT_EQ(q.gradient().values<float>(), std::vector<float>(3));
  EXPECT_EQ(k.gradient().values<float>(), std::vector<float>(3));
  EXPECT_EQ(v.gradient().values<float>(), upstream.values<float>());
}

// A query reads its own row alone, also when query and key are equally long.
TEST(AttentionReports, ArgumentsAreQueryKeyValue) {
  Tensor q = random_tensor<float>({1, 5, 8}, 1);
  const Tensor memory = random_tensor<float>({1, 5, 8}, 2);
  const AttentionOptions options{.heads = 2, .return_weights = true};
  const std::vector<float> before = dense(q, memory, memory, options).output.values<float>();
  std::vector<float> values = q.values<float>();
  for (size_t i = 24; i < 32; ++i) values[i] += 1;
  const std::vector<float> after =
      dense(Tensor::of<float>({1, 5, 8}, values), memory, memory, options).output.values<float>();
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(before[i] != after[i], i >= 24 && i < 32) << i;
  const Attention y = dense(random_tensor<float>({1, 2, 8}, 1), memory, memory, options);
  EXPECT_EQ(y.output.shape(), (Shape{1, 2, 8}));
  EXPECT_EQ(y.weights.shape(), (Shape{1, 2, 2, 5}));
}

TEST(AttentionReports, AScoreThatIsNotANumberDoesNotPassForABlockedRow) {
  const Tensor scores = Tensor::of<float>({1, 3}, {-INFINITY, NAN, -INFINITY});
  expect_near(weights_of(scores, {}), {NAN, NAN, NAN}, 0);
}

}  // namespace
}  // namespace gs
