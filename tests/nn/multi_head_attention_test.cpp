#include "framework/nn/multi_head_attention.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "framework/backend/memory.h"
#include "framework/ops/cast.h"
#include "framework/ops/reshape.h"
#include "framework/ops/slice.h"
#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using nn::AttentionContext;
using nn::MultiHeadAttention;
using test::check_module;
using test::error_of;
using test::expect_near;
using test::expect_pytorch_module;
using test::FixtureInputs;
using test::random_tensor;

using Offsets = std::vector<int32_t>;
using Outputs = std::map<std::string, Tensor>;

// In double precision, with other than the first values.
void prepare(MultiHeadAttention& attention, uint64_t seed = 1) {
  attention.to(kFloat64);
  test::randomize(attention, seed);
}

Tensor batch_of_one(const Tensor& rows) {
  return Tensor::of<double>({1, rows.size(0), rows.size(1)}, rows.values<double>());
}

std::vector<double> rows_of(const Tensor& x, int64_t start, int64_t end) {
  return slice(x, x.rank() - 2, start, end).values<double>();
}

TEST(MultiHeadAttention, AgreesWithPyTorch) {
  for (const char* name : {"self", "causal", "cross"}) {
    MultiHeadAttention attention(6, {.heads = 2});
    expect_pytorch_module("modules", std::string("multi_head_attention_") + name, attention,
                          [&](const FixtureInputs& inputs) {
                            Tensor weights;
                            AttentionContext context{.causal = inputs.has_option("causal"),
                                                     .weights = &weights};
                            const bool cross = inputs.all().contains("memory");
                            if (cross) context.mask = inputs["mask"];
                            const Tensor& memory = inputs[cross ? "memory" : "query"];
                            const Tensor y = attention(inputs["query"], memory, memory, context);
                            return Outputs{{"output", y}, {"weights", weights}};
                          });
  }
}

TEST(MultiHeadAttention, AgreesWithPyTorchForKeysAndValuesOfOtherWidths) {
  MultiHeadAttention attention(9, {.heads = 3, .key_width = 5, .value_width = 7});
  expect_pytorch_module("attention", "widths", attention, [&](const FixtureInputs& inputs) {
    Tensor weights;
    const AttentionContext context{.mask = cast(inputs["mask"], kBool), .weights = &weights};
    const Tensor y = attention(inputs["query"], inputs["key"], inputs["value"], context);
    return Outputs{{"output", y}, {"weights", weights}};
  });
}

TEST(MultiHeadAttention, GradientsAreRight) {
  const std::vector<Tensor> inputs{random_tensor<double>({2, 3, 6}, 1),
                                   random_tensor<double>({2, 4, 5}, 2),
                                   random_tensor<double>({2, 4, 3}, 3)};
  const Tensor mask =
      Tensor(Array::of<double>({2, 1, 3, 4}, {1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1,  //
                                              0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0})
                 .to(kBool));
  for (const AttentionContext& context :
       {AttentionContext{}, AttentionContext{.causal = true}, AttentionContext{.mask = mask},
        AttentionContext{.key_lengths = {3, 4}}}) {
    MultiHeadAttention attention(6, {.heads = 3, .key_width = 5, .value_width = 3});
    check_module(
        attention,
        [&](const std::vector<Tensor>& x) {
          AttentionContext own = context;
          if (own.mask.defined()) own.mask = own.mask.to(x[0].device());
          return attention(x[0], x[1], x[2], own);
        },
        inputs);
  }
}

TEST(MultiHeadAttention, GradientsAreRightWithoutBiasesAndWithDropout) {
  const Tensor x = random_tensor<double>({2, 4, 4}, 1);
  MultiHeadAttention without(4, {.heads = 1, .input_bias = false, .output_bias = false});
  EXPECT_EQ(without.parameters().size(), 4u);
  check_module(without,
               [&](const std::vector<Tensor>& in) { return without(in[0], in[0], in[0], {}); },
               {x});
  MultiHeadAttention dropping(4, {.heads = 2, .dropout = 0.3});
  check_module(dropping,
               [&](const std::vector<Tensor>& in) { return dropping(in[0], in[0], in[0], {}); },
               {x});
}

TEST(MultiHeadAttention, GradientsAreRightForPackedSequences) {
  const Offsets queries{0, 3, 4, 6}, keys{0, 2, 6, 7};
  MultiHeadAttention attention(4, {.heads = 2});
  check_module(attention,
               [&](const std::vector<Tensor>& x) {
                 return attention(x[0], x[1], x[1],
                                  {.query_offsets = queries, .key_offsets = keys});
               },
               {random_tensor<double>({6, 4}, 1), random_tensor<double>({7, 4}, 2)});
}

// pytorch/pytorch#106700, #186237, #191325: a division by zero heads killed the process.
TEST(MultiHeadAttention, RefusesHeadsThatDoNotDivideTheWidth) {
  const int64_t bytes = memory_figures().live;
  for (const std::pair<int64_t, int64_t>& sizes :
       {std::pair<int64_t, int64_t>{8, 0}, {0, 0}, {6, 4}, {8, -2}, {0, 2}, {-8, 2}}) {
    EXPECT_EQ(error_of([&] { MultiHeadAttention(sizes.first, {.heads = sizes.second}); }),
              fmt::format("multi-head attention: the width must be a multiple of the heads, got "
                          "width {} and {} heads",
                          sizes.first, sizes.second));
  }
  EXPECT_EQ(memory_figures().live, bytes);
}

TEST(MultiHeadAttention, PackedSequencesEqualEachByItself) {
  MultiHeadAttention attention(6, {.heads = 2});
  prepare(attention);
  const Offsets queries{0, 3, 4, 4, 9}, keys{0, 2, 7, 9, 14};
  const Tensor x = random_tensor<double>({9, 6}, 1), memory = random_tensor<double>({14, 6}, 2);
  for (const bool causal : {false, true}) {
    const Tensor self =
        attention(x, x, x, {.query_offsets = queries, .key_offsets = queries, .causal = causal});
    const Tensor cross = attention(
        x, memory, memory, {.query_offsets = queries, .key_offsets = keys, .causal = causal});
    for (size_t b = 0; b + 1 < queries.size(); ++b) {
      const Tensor one = batch_of_one(slice(x, 0, queries[b], queries[b + 1]));
      const Tensor its = batch_of_one(slice(memory, 0, keys[b], keys[b + 1]));
      expect_near(attention(one, one, one, {.causal = causal}),
                  rows_of(self, queries[b], queries[b + 1]), 1e-12);
      expect_near(attention(one, its, its, {.causal = causal}),
                  rows_of(cross, queries[b], queries[b + 1]), 1e-12);
    }
  }
}

Tensor padded(const Tensor& rows, int64_t length, double padding) {
  std::vector<double> values = rows.values<double>();
  values.resize(static_cast<size_t>(length * rows.size(1)), padding);
  return Tensor::of<double>({1, length, rows.size(1)}, values);
}

// OpenNMT/OpenNMT-py#318, facebookresearch/fairseq#427, pytorch/translate#308
TEST(MultiHeadAttention, PaddingChangesNothing) {
  MultiHeadAttention attention(6, {.heads = 3});
  prepare(attention);
  const Tensor sentence = random_tensor<double>({3, 6}, 1);
  const Tensor alone = batch_of_one(sentence);
  const Tensor mask = Tensor(Array::of<double>({7}, {1, 1, 1, 0, 0, 0, 0}).to(kBool));
  for (const double padding : {0.0, 1.0, 1e6}) {
    for (const bool causal : {false, true}) {
      const std::vector<double> expected =
          attention(alone, alone, alone, {.causal = causal}).values<double>();
      const AttentionContext by_length{.causal = causal, .key_lengths = {3}};
      const AttentionContext by_mask{.causal = causal, .mask = mask};
      for (const AttentionContext& context : {by_length, by_mask}) {
        const Tensor x = padded(sentence, 7, padding).set_needs_grad();
        const Tensor y = attention(x, x, x, context);
        expect_near(slice(y, 1, 0, 3), expected, 1e-12);
        // Only real positions count in the loss: nothing reaches the padding.
        y.backward(padded(random_tensor<double>({3, 6}, 2), 7, 0));
        const std::vector<double> gradient = x.gradient().values<double>();
        for (size_t i = 0; i < gradient.size(); ++i) EXPECT_EQ(gradient[i] == 0, i >= 18) << i;
      }
    }
  }
}

// meta-pytorch/torchtune#959; lucidrains/x-transformers#311, #322
TEST(MultiHeadAttention, TokenByTokenEqualsTheWholePass) {
  MultiHeadAttention attention(6, {.heads = 2});
  prepare(attention);
  const NoGrad no_grad;
  const Tensor x = random_tensor<double>({2, 6, 6}, 1);
  const Tensor whole = attention(x, x, x, {.causal = true});
  nn::TokenHistory history;
  std::vector<int32_t> rows;
  for (int64_t t = 0; t < 6; ++t) {
    rows.assign(static_cast<size_t>(t) + 1, 0);
    rows.insert(rows.end(), static_cast<size_t>(t) + 1, 1);
    const Tensor y = attention.extend(reshape(slice(x, 1, t, t + 1), {2, 6}), history, rows);
    expect_near(y, rows_of(whole, t, t + 1), 1e-12);
    EXPECT_EQ(history.keys.size(), static_cast<size_t>(t) + 1);
  }
}

TEST(MultiHeadAttention, TheHistoryFollowsABeamSearch) {
  MultiHeadAttention attention(4, {.heads = 2});
  prepare(attention);
  const NoGrad no_grad;
  const Tensor first = random_tensor<double>({2, 4}, 1), second = random_tensor<double>({3, 4}, 2),
               third = random_tensor<double>({2, 4}, 3);
  nn::TokenHistory history;
  attention.extend(first, history, std::vector<int32_t>{0, 1});
  attention.extend(second, history, std::vector<int32_t>{1, 0, 0, 1, 1, 2});
  const std::vector<int32_t> rows{1, 2, 0, 0, 1, 1};
  const Tensor y = attention.extend(third, history, rows);
  for (int64_t row = 0; row < 2; ++row) {
    std::vector<double> tokens;
    for (int64_t t = 0; t < 3; ++t) {
      const Tensor& token = t == 0 ? first : t == 1 ? second : third;
      const int64_t from = rows[static_cast<size_t>(3 * row + t)];
      const std::vector<double> values = slice(token, 0, from, from + 1).values<double>();
      tokens.insert(tokens.end(), values.begin(), values.end());
    }
    const Tensor whole = Tensor::of<double>({1, 3, 4}, tokens);
    expect_near(slice(y, 0, row, row + 1),
                rows_of(attention(whole, whole, whole, {.causal = true}), 2, 3), 1e-12);
  }
}

// pytorch/pytorch#188765, sgl-project/sglang#34474
TEST(MultiHeadAttention, TakesNoSequencesNoQueriesAndNoKeys) {
  MultiHeadAttention attention(4, {.heads = 2});
  prepare(attention);
  for (const auto& [batch, queries, keys] :
       {std::array<int64_t, 3>{0, 3, 3}, {2, 0, 3}, {2, 3, 0}}) {
    const Tensor x = random_tensor<double>({batch, queries, 4}, 1).set_needs_grad();
    const Tensor memory = random_tensor<double>({batch, keys, 4}, 2).set_needs_grad();
    const Tensor mask(Array::full({batch, 1, 1, keys}, 1, kBool));
    const Tensor y = attention(x, memory, memory, {.mask = mask});
    EXPECT_EQ(y.shape(), Shape({batch, queries, 4}));
    const std::vector<double> values = y.values<double>(),
                              bias = attention.output->bias->values<double>();
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], bias[i % 4]);
    attention.clear_gradients();
    y.backward(random_tensor<double>(y.shape(), 3));
    EXPECT_EQ(x.gradient().values<double>(),
              std::vector<double>(static_cast<size_t>(x.elements())));
    EXPECT_EQ(memory.gradient().shape(), memory.shape());
    EXPECT_EQ(attention.query->weight->gradient().values<double>(), std::vector<double>(16));
  }
}

TEST(MultiHeadAttention, GivesTheWeightsOfEachHead) {
  MultiHeadAttention attention(6, {.heads = 3, .dropout = 0.5});  // weights: before dropout
  prepare(attention);
  const Tensor x = random_tensor<double>({2, 4, 6}, 1);
  Tensor weights;
  attention(x, x, x, {.causal = true, .weights = &weights});
  EXPECT_EQ(weights.shape(), Shape({2, 3, 4, 4}));
  const std::vector<double> values = weights.values<double>();
  for (size_t row = 0; row < 24; ++row) {
    double sum = 0;
    for (size_t key = 0; key < 4; ++key) {
      sum += values[4 * row + key];
      EXPECT_EQ(values[4 * row + key] > 0, key <= row % 4);
    }
    EXPECT_NEAR(sum, 1, 1e-12);
  }
}

TEST(MultiHeadAttention, DropsWeightsInTrainingOnly) {
  MultiHeadAttention attention(4, {.heads = 2, .dropout = 0.5});
  const Tensor x = random_tensor<float>({1, 5, 4}, 1);
  const auto values = [&] { return attention(x, x, x, {}).values<float>(); };
  EXPECT_NE(values(), values());
  attention.evaluate();
  EXPECT_EQ(values(), values());
}

TEST(MultiHeadAttention, RefusesContextsThatDoNotFit) {
  const MultiHeadAttention attention(4, {.heads = 2});
  const Tensor rows = random_tensor<float>({3, 4}, 1), batch = random_tensor<float>({1, 3, 4}, 1);
  const Offsets offsets{0, 3};
  EXPECT_EQ(error_of([&] { attention(batch, batch, batch, {.key_offsets = offsets}); }),
            "multi-head attention: offsets are for queries and keys alike, got 0 and 2; give both "
            "or none");
  EXPECT_EQ(error_of([&] { attention(rows, rows, rows, {.query_offsets = offsets}); }),
            "multi-head attention: offsets are for queries and keys alike, got 2 and 0; give both "
            "or none");
  const auto packed = [&](const AttentionContext& extra) {
    AttentionContext context = extra;
    context.query_offsets = context.key_offsets = offsets;
    return error_of([&] { attention(rows, rows, rows, context); });
  };
  EXPECT_EQ(attention(rows, rows, rows, {.query_offsets = offsets, .key_offsets = offsets}).shape(),
            Shape({3, 4}));
  EXPECT_NE(packed({.key_lengths = {3}}), "");
  EXPECT_NE(packed({.mask = Tensor(Array::full({5}, 1, kBool))}), "");
  EXPECT_NE(error_of([&] { attention(rows, rows, rows, {}); }), "");
  EXPECT_NE(error_of([&] { attention(batch, batch, batch, {.mask = rows}); }), "");
  EXPECT_NE(error_of([&] { attention(batch, batch, batch, {.key_lengths = {4}}); }), "");
  EXPECT_NE(error_of([&] { attention(batch, batch, slice(batch, 1, 0, 2), {}); }), "");
}

}  // namespace
}  // namespace gs
