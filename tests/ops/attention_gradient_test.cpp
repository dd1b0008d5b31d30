// Gradients of attention against differences, and against PyTorch.
#include <gtest/gtest.h>

#include "framework/ops/attention.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::Fixture;
using test::FixtureArray;
using test::random_tensor;

using Inputs = std::vector<Tensor>;

Inputs dense_inputs(int64_t batch, int64_t queries, int64_t keys, int64_t width, int64_t value) {
  return {random_tensor<double>({batch, queries, width}, 1),
          random_tensor<double>({batch, keys, width}, 2),
          random_tensor<double>({batch, keys, value}, 3)};
}

Tensor random_mask(const Shape& shape) {
  std::vector<bool> mask;
  for (const double number : test::random_numbers(shape.elements(), 8)) mask.push_back(number > -1);
  return Tensor::of<bool>(shape, mask);
}

// Of query, key, value and, where there is a fourth input, scores.
void expect_gradients(const AttentionOptions& options, const Inputs& inputs) {
  const auto run = [&](bool weights) {
    return [options, weights](const Inputs& in) {
      Generator generator(11);
      AttentionOptions all = options;
      all.generator = &generator;
      all.return_weights = weights;
      if (in.size() > 3) all.scores = in[3];
      const Attention y = scaled_dot_product_attention(in[0], in[1], in[2], all);
      return weights ? y.weights : y.output;
    };
  };
  for (const bool weights : {false, true}) {
    const GradcheckResult result = gradcheck(run(weights), inputs);
    EXPECT_TRUE(result.passed) << result.message;
  }
}

TEST(AttentionGradient, PassesGradcheckInEveryForm) {
  expect_gradients({}, dense_inputs(1, 3, 3, 2, 2));
  expect_gradients({.heads = 2}, dense_inputs(2, 3, 5, 6, 2));
  expect_gradients({.heads = 3, .scale = -0.4}, dense_inputs(2, 1, 4, 3, 9));
  expect_gradients({.heads = 2, .causal = true}, dense_inputs(2, 4, 4, 4, 4));
  expect_gradients({.heads = 2, .causal = true}, dense_inputs(1, 3, 6, 4, 4));
  expect_gradients({.heads = 1, .causal = true}, dense_inputs(1, 6, 4, 3, 2));
  expect_gradients({.heads = 2, .key_lengths = {5, 0, 2}}, dense_inputs(3, 3, 5, 4, 2));
  expect_gradients({.heads = 2, .mask = random_mask({2, 2, 3, 5})}, dense_inputs(2, 3, 5, 4, 4));
  expect_gradients({.heads = 2, .mask = random_mask({2, 1, 1, 5})}, dense_inputs(2, 3, 5, 4, 4));
  expect_gradients({.heads = 1}, dense_inputs(1, 2, 3, 1, 17));
  for (const auto& [queries, keys] : {std::pair(0, 3), std::pair(3, 0), std::pair(1, 1)})
    expect_gradients({.heads = 2}, dense_inputs(2, queries, keys, 4, 2));
}

TEST(AttentionGradient, PassesGradcheckWithDropout) {
  expect_gradients({.heads = 2, .dropout = 0.4, .training = true}, dense_inputs(2, 3, 5, 6, 2));
  expect_gradients(
      {.heads = 2, .causal = true, .key_lengths = {7, 3}, .dropout = 0.3, .training = true},
      dense_inputs(2, 5, 7, 4, 4));
}

TEST(AttentionGradient, ReachesScoresOfAnyShape) {
  for (const Shape& shape :
       {Shape{2, 2, 3, 5}, Shape{2, 1, 5}, Shape{1, 2, 3, 1}, Shape{3, 5}, Shape{1}, Shape{}}) {
    Inputs inputs = dense_inputs(2, 3, 5, 4, 4);
    inputs.push_back(random_tensor<double>(shape, 4));
    expect_gradients({.heads = 2, .causal = true, .key_lengths = {5, 4}}, inputs);
    expect_gradients({.heads = 2, .dropout = 0.3, .training = true}, inputs);
  }
}

TEST(AttentionGradient, PassesGradcheckWhenPacked) {
  const std::vector<int32_t> queries{0, 3, 3, 4, 9, 9}, keys{0, 2, 5, 5, 9, 9};
  const Inputs inputs{random_tensor<double>({9, 4}, 1), random_tensor<double>({9, 4}, 2),
                      random_tensor<double>({9, 6}, 3), random_tensor<double>({1, 2, 5, 4}, 4)};
  for (const bool causal : {false, true}) {
    for (const double dropout : {0.0, 0.4}) {
      const auto run = [&](const Inputs& in) {
        Generator generator(2);
        return packed_attention(in[0], queries, in[1], in[2], keys,
                                {.heads = 2,
                                 .causal = causal,
                                 .scores = in[3],
                                 .dropout = dropout,
                                 .training = true,
                                 .generator = &generator})
            .output;
      };
      const GradcheckResult result = gradcheck(run, inputs);
      EXPECT_TRUE(result.passed) << result.message;
    }
  }
}

TEST(AttentionGradient, OnlyWhatIsNeededIsComputed) {
  const Inputs inputs = dense_inputs(2, 3, 5, 4, 4);
  std::vector<std::vector<double>> all;
  for (const size_t only : {size_t{3}, size_t{0}, size_t{1}, size_t{2}}) {
    Inputs in;
    for (size_t i = 0; i < 3; ++i) {
      in.push_back(Tensor(inputs[i].value()));
      if (only == 3 || only == i) in[i].set_needs_grad();
    }
    const int64_t before = live_nodes();
    {
      const Tensor y = scaled_dot_product_attention(in[0], in[1], in[2], {.heads = 2}).output;
      y.backward(random_tensor<double>(y.shape(), 5));
    }
    EXPECT_EQ(live_nodes(), before);
    for (size_t i = 0; i < 3; ++i) {
      if (only == 3) {
        all.push_back(in[i].gradient().values<double>());
      } else if (only == i) {
        EXPECT_EQ(in[i].gradient().values<double>(), all[i]);
      } else {
        EXPECT_FALSE(in[i].gradient().defined());
      }
    }
  }
}

TEST(AttentionGradient, ChangedValuesAreNoticed) {
  for (int changed = 0; changed < 4; ++changed) {
    Inputs in = dense_inputs(1, 3, 3, 2, 2);
    Tensor bias = random_tensor<double>({1}, 4).set_needs_grad();
    Attention y =
        scaled_dot_product_attention(in[0], in[1], in[2], {.scores = bias, .return_weights = true});
    Tensor victim = changed < 3 ? in[static_cast<size_t>(changed)] : y.weights.detach();
    victim.add_in_place(victim.detach());
    EXPECT_NE(error_of([&] { y.output.backward(y.output.detach()); }).find("changed in place"),
              std::string::npos);
  }
}

// (B, H, T, D) -> (B, T, H * D)
std::vector<double> merge_heads(const FixtureArray& x) {
  const Shape& shape = x.shape;
  std::vector<double> merged(x.values.size());
  size_t from = 0;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t h = 0; h < shape[1]; ++h)
      for (int64_t i = 0; i < shape[2]; ++i)
        for (int64_t c = 0; c < shape[3]; ++c, ++from)
          merged[static_cast<size_t>(((b * shape[2] + i) * shape[1] + h) * shape[3] + c)] =
              x.values[from];
  return merged;
}

Tensor merged_tensor(const FixtureArray& x) {
  const Shape& shape = x.shape;
  return Tensor::of<double>({shape[0], shape[2], shape[1] * shape[3]}, merge_heads(x));
}

TEST(AttentionGradient, AgreesWithPyTorch) {
  int cases = 0;
  for (const Fixture& fixture : Fixture::load_all("operations")) {
    if (fixture.operation() != "scaled_dot_product_attention") continue;
    const testing::ScopedTrace trace(__FILE__, __LINE__, fixture.name());
    ++cases;
    const FixtureArray& query = fixture.array("inputs/query");
    Inputs in{merged_tensor(query), merged_tensor(fixture.array("inputs/key")),
              merged_tensor(fixture.array("inputs/value"))};
    for (Tensor& tensor : in) tensor.set_needs_grad();
    AttentionOptions options{.heads = query.shape[1], .causal = fixture.flag("options/causal")};
    options.return_weights = true;
    if (fixture.has("inputs/mask")) {
      const FixtureArray& mask = fixture.array("inputs/mask");
      options.mask = Tensor(Array::of<double>(mask.shape, mask.values).to(kBool));
    }
    if (fixture.has("inputs/scores")) {
      const FixtureArray& scores = fixture.array("inputs/scores");
      options.scores = Tensor::of<double>(scores.shape, scores.values);
      if (fixture.has("gradients/scores")) options.scores.set_needs_grad();
    }
    const Attention y = scaled_dot_product_attention(in[0], in[1], in[2], options);
    expect_near(y.output, merge_heads(fixture.array("outputs/output")), 1e-10);
    expect_near(y.weights, fixture.array("outputs/weights").values, 1e-10);
    y.output.backward(merged_tensor(fixture.array("upstream")));
    expect_near(in[0].gradient(), merge_heads(fixture.array("gradients/query")), 1e-10);
    expect_near(in[1].gradient(), merge_heads(fixture.array("gradients/key")), 1e-10);
    expect_near(in[2].gradient(), merge_heads(fixture.array("gradients/value")), 1e-10);
    if (fixture.has("gradients/scores"))
      expect_near(options.scores.gradient(), fixture.array("gradients/scores").values, 1e-10);
  }
  EXPECT_GE(cases, 13);
}

}  // namespace
}  // namespace gs
