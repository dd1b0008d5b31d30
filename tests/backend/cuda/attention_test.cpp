#include "framework/backend/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/backend/cuda/both_devices.h"

namespace gs {
namespace {

using backend::AttentionGradients;
using backend::AttentionInputs;
using backend::AttentionPlan;
using backend::AttentionResults;
using test::Place;

// Upstream gradients: small, for bfloat16 rounds the output of which they are summed up.
Array random_gradient(const Shape& shape, uint64_t seed) {
  std::vector<double> values = test::random_array(shape, seed).values<double>();
  for (double& value : values) value /= 8;
  return Array::of(shape, values);
}

struct Lengths {
  int64_t queries, keys;
};

// Sequences one after another: without padding, or with `width` keys each of which only some count.
AttentionPlan plan_of(const std::vector<Lengths>& lengths, int64_t heads, int64_t width,
                      int64_t value_width, int64_t padded_keys = 0) {
  AttentionPlan plan;
  plan.heads = heads;
  plan.width = width;
  plan.value_width = value_width;
  plan.scale = 0.3;
  int64_t query = 0, key = 0;
  for (const auto& [queries, keys] : lengths) {
    const int64_t columns = std::max(keys, padded_keys);
    plan.sequences.push_back({query, queries, key, keys, plan.weights, columns});
    query += queries;
    key += columns;
    plan.weights += heads * queries * columns;
  }
  return plan;
}

struct Sizes {
  int64_t queries = 0, keys = 0, longest_query = 0, longest_key = 0;
};
Sizes sizes_of(const AttentionPlan& plan) {
  Sizes sizes;
  for (const auto& sequence : plan.sequences) {
    sizes.queries += sequence.queries;
    sizes.keys += sequence.weights_width;
    sizes.longest_query = std::max(sizes.longest_query, sequence.queries);
    sizes.longest_key = std::max(sizes.longest_key, sequence.weights_width);
  }
  return sizes;
}

std::array<int64_t, 4> strides_of(const AttentionPlan& plan, std::array<bool, 4> broadcast) {
  const Sizes sizes = sizes_of(plan);
  const std::array<int64_t, 4> full{static_cast<int64_t>(plan.sequences.size()), plan.heads,
                                    sizes.longest_query, sizes.longest_key};
  std::array<int64_t, 4> strides{};
  int64_t stride = 1;
  for (size_t d = 4; d-- > 0;) {
    if (broadcast[d]) continue;
    strides[d] = stride;
    stride *= full[d];
  }
  return strides;
}
int64_t elements_of(const AttentionPlan& plan, std::array<bool, 4> broadcast) {
  const Sizes sizes = sizes_of(plan);
  const std::array<int64_t, 4> full{static_cast<int64_t>(plan.sequences.size()), plan.heads,
                                    sizes.longest_query, sizes.longest_key};
  int64_t elements = 1;
  for (size_t d = 0; d < 4; ++d) elements *= broadcast[d] ? 1 : full[d];
  return elements;
}

// Everything that attention computes, forward and backward, from query, key, value, mask, scores,
// dy and dweights.
template <typename Tag>
std::vector<Array> run_all(Tag on, const Place& place, const std::vector<Array>& in,
                           AttentionPlan plan) {
  const AttentionInputs inputs{in[0], in[1], in[2], in[3], in[4]};
  const DType wide = place.dtype == kFloat64 ? kFloat64 : kFloat32;
  const Shape weights{plan.weights};
  AttentionResults results{place.empty(in[5].shape()), place.empty(weights), {}};
  if (!backend::attention_keeps_weights(on))
    results.statistics = place.empty({in[0].shape()[0], plan.heads, 2}, wide);
  backend::place_sequences(on, plan);
  backend::attention(on, results, inputs, plan);
  AttentionResults alone{place.empty(in[5].shape()), {}, {}};
  backend::attention(on, alone, inputs, plan);
  test::expect_near(alone.output, results.output, 0, "output without weights");

  const auto like = [&](size_t i) { return place.empty(in[i].shape()); };
  AttentionGradients first{like(0), like(1), like(2), place.empty(weights)};
  backend::attention_backward(on, first, in[5], {}, inputs, results, plan);
  AttentionGradients second{like(0), like(1), {}, place.empty(weights)};
  backend::attention_backward(on, second, {}, in[6], inputs, results, plan);
  std::vector<Array> all{results.output, results.weights, first.dquery, first.dkey,    first.dvalue,
                         first.dscores,  second.dquery,   second.dkey,  second.dscores};
  if (in[4].defined()) {
    all.push_back(place.empty(in[4].shape()));
    backend::sum_scores(on, all.back(), first.dscores, plan);
  }
  // One at a time they are the same.
  AttentionGradients one{{}, like(1), {}, {}};
  backend::attention_backward(on, one, in[5], {}, inputs, results, plan);
  test::expect_near(one.dkey, first.dkey, 0, "gradient of the keys alone");
  return all;
}

void expect_same(const std::string& name, const AttentionPlan& plan, const Array& mask = {},
                 const Array& scores = {}) {
  const Sizes sizes = sizes_of(plan);
  const int64_t columns = plan.heads * plan.width, value_columns = plan.heads * plan.value_width;
  const std::vector<Array> inputs{test::random_array({sizes.queries, columns}, 1),
                                  test::random_array({sizes.keys, columns}, 2),
                                  test::random_array({sizes.keys, value_columns}, 3),
                                  mask,
                                  scores,
                                  random_gradient({sizes.queries, value_columns}, 4),
                                  random_gradient({plan.weights}, 5)};
  test::expect_same_on_both(
      name, inputs,
      [&](auto on, const Place& place, const std::vector<Array>& in) {
        return run_all(on, place, in, plan);
      },
      2e-5);
}

// bfloat16 against what the CPU makes of the same numbers in float64.
void expect_near_in_bfloat16(const std::string& name, const AttentionPlan& plan) {
  const Sizes sizes = sizes_of(plan);
  const int64_t columns = plan.heads * plan.width, value_columns = plan.heads * plan.value_width;
  std::vector<Array> here, there;
  for (const Array& input :
       {test::random_array({sizes.queries, columns}, 1),
        test::random_array({sizes.keys, columns}, 2),
        test::random_array({sizes.keys, value_columns}, 3), Array(), Array(),
        random_gradient({sizes.queries, value_columns}, 4), random_gradient({plan.weights}, 5)}) {
    const Array rounded = input.defined() ? input.to(kBFloat16) : input;
    here.push_back(rounded.defined() ? rounded.to(kFloat64) : rounded);
    there.push_back(rounded.defined() ? rounded.to(Device::cuda()) : rounded);
  }
  const auto expected = run_all(Cpu{}, Place{Device::cpu(), kFloat64}, here, plan);
  const auto actual = run_all(Cuda{}, Place{Device::cuda(), kBFloat16}, there, plan);
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<double> a = test::numbers_of(actual[i]), b = test::numbers_of(expected[i]);
    double largest = 0.5;
    for (const double number : b) largest = std::max(largest, std::abs(number));
    for (size_t j = 0; j < a.size(); ++j)
      ASSERT_NEAR(a[j], b[j], 0.01 * largest) << name << ", result " << i << ", element " << j;
  }
}

Array random_mask(int64_t elements, uint64_t seed) {
  const std::vector<double> numbers = test::random_array({elements}, seed).values<double>();
  std::vector<bool> mask;
  for (const double number : numbers) mask.push_back(number > -1);
  return Array::of<bool>({elements}, mask);
}

class CudaAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

TEST_F(CudaAttention, AgreesInAllWidths) {
  for (const int64_t width : {1, 8, 15, 16, 17, 32, 33, 64, 70})
    expect_same(fmt::format("width {}", width), plan_of({{5, 7}}, 2, width, width));
  expect_same("narrow values", plan_of({{5, 7}}, 2, 40, 3));
  expect_same("wide values", plan_of({{5, 7}}, 2, 3, 72));
  // Rows of 2: what follows row 0 after 64 columns is row 32.
  expect_same("narrow rows, wide values", plan_of({{70, 7}}, 1, 2, 72));
  expect_same("no width", plan_of({{5, 7}}, 2, 0, 4));
  expect_same("no value", plan_of({{5, 7}}, 2, 4, 0));
}

TEST_F(CudaAttention, AgreesInAllLengths) {
  for (const bool causal : {false, true}) {
    for (const Lengths length : std::vector<Lengths>{
             {1, 1}, {31, 32}, {32, 33}, {33, 31}, {64, 65}, {1, 70}, {70, 1}, {0, 5}, {5, 0}}) {
      AttentionPlan plan = plan_of({length}, 1, 8, 8);
      plan.causal = causal;
      expect_same(fmt::format("{} queries, {} keys", length.queries, length.keys), plan);
    }
  }
}

// Tensor cores take 16 rows, 16 columns and 8 columns at a time.
TEST_F(CudaAttention, IsNearInBFloat16) {
  int place = 0;
  for (const int64_t queries : {1, 15, 16, 17, 33, 64, 65}) {
    for (const int64_t keys : {1, 15, 16, 17, 33, 64, 65}) {
      AttentionPlan plan = plan_of({{queries, keys}}, 1, 16, 16);
      plan.causal = ++place % 2 == 0;
      if (place % 3 == 0) plan.dropout = backend::DropoutMask::of(0.3, RandomStream{7, 3});
      expect_near_in_bfloat16(fmt::format("{} queries, {} keys", queries, keys), plan);
    }
  }
  for (const int64_t width : {8, 16, 24, 32, 64, 128, 150}) {
    for (const bool padded : {false, true}) {
      AttentionPlan plan = plan_of({{17, 33}, {33, 20}}, 2, width, width, padded ? 35 : 0);
      plan.scale = 1 / std::sqrt(static_cast<double>(width));
      plan.causal = padded;
      plan.dropout = backend::DropoutMask::of(0.1, RandomStream{7, 3});
      expect_near_in_bfloat16(fmt::format("width {}, padded: {}", width, padded), plan);
    }
  }
}

TEST_F(CudaAttention, AgreesForSequencesOfManyLengths) {
  for (const bool causal : {false, true}) {
    AttentionPlan packed = plan_of({{3, 5}, {40, 34}, {0, 2}, {7, 0}, {33, 33}, {1, 1}}, 3, 8, 5);
    packed.causal = causal;
    expect_same("packed", packed);
    AttentionPlan padded = plan_of({{9, 40}, {9, 0}, {9, 3}, {9, 33}}, 2, 8, 8, 40);
    padded.causal = causal;
    expect_same("padded", padded);
  }
  expect_same("none", plan_of({}, 2, 8, 8));
}

TEST_F(CudaAttention, DropsTheSameWeights) {
  for (const int64_t keys : {3, 33, 34, 35, 36}) {
    AttentionPlan plan = plan_of({{5, keys}, {35, 7}}, 2, 8, 8);
    plan.dropout = backend::DropoutMask::of(0.3, RandomStream{7, 3});
    expect_same(fmt::format("{} keys", keys), plan);
    plan.causal = true;
    expect_same(fmt::format("{} keys, causal", keys), plan);
  }
  AttentionPlan wide = plan_of({{5, 40}}, 1, 80, 70);
  wide.dropout = backend::DropoutMask::of(0.3, RandomStream{7, 3});
  expect_same("wide", wide);
}

TEST_F(CudaAttention, MasksAndScoresBroadcast) {
  for (const bool padded : {false, true}) {
    AttentionPlan plan = plan_of({{3, 35}, {33, 6}}, 2, 4, 4, padded ? 37 : 0);
    for (const unsigned bits : {0u, 3u, 5u, 6u, 12u, 15u}) {
      const std::array<bool, 4> broadcast{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                                          (bits & 8) != 0};
      std::array<bool, 4> other = broadcast;
      for (bool& flag : other) flag = !flag;
      plan.mask_strides = strides_of(plan, broadcast);
      plan.scores_strides = strides_of(plan, other);
      plan.causal = bits % 3 == 1;
      expect_same(fmt::format("broadcast {:04b}", bits), plan,
                  random_mask(elements_of(plan, broadcast), bits),
                  test::random_array({elements_of(plan, other)}, bits));
    }
  }
}

// What has no weight counts nothing; a row of -1e9 alone is a row like any other.
TEST_F(CudaAttention, HiddenKeysCountNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const AttentionPlan dense = plan_of({{4, 70}}, 1, 2, 2);
  AttentionPlan plan = dense;
  plan.scores_strides = {0, 0, 70, 1};
  std::vector<double> scores(280), values(140, 0.5);
  for (size_t j = 0; j < 70; ++j) {
    scores[j] = j == 3 || j == 40 ? -kInfinity : 0.1;   // some
    scores[70 + j] = -kInfinity;                        // all
    scores[140 + j] = j == 3 || j == 40 ? -3e9 : -1e9;  // all far below
    scores[210 + j] = j < 32 || j == 40 ? -1e6 : 0.1;   // the first tile
  }
  values[6] = kNan, values[80] = kInfinity;
  const std::vector<Array> inputs{
      Array::zeros({4, 2}, kFloat64),     Array::zeros({70, 2}, kFloat64),
      Array::of<double>({70, 2}, values), {},
      Array::of<double>({280}, scores),   random_gradient({4, 2}, 4),
      random_gradient({280}, 5)};
  test::expect_same_on_both("hidden", inputs,
                            [&](auto on, const Place& place, const std::vector<Array>& in) {
                              std::vector<Array> all = run_all(on, place, in, plan);
                              for (const double number : test::numbers_of(all[0]))
                                EXPECT_TRUE(std::isfinite(number));
                              return all;
                            });
}

// Neither forward nor backward: keys 35 and 36 count for the last queries alone, queries 3 and 4
// for the first keys.
TEST_F(CudaAttention, WhatIsNotANumberStaysWhereItCounts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  AttentionPlan plan = plan_of({{40, 40}}, 1, 4, 4);
  plan.causal = true;
  const auto with = [](const Array& x, int64_t place, double number) {
    std::vector<double> values = x.values<double>();
    values[static_cast<size_t>(place)] = number;
    return Array::of(x.shape(), values);
  };
  std::vector<Array> inputs{test::random_array({40, 4}, 1),
                            test::random_array({40, 4}, 2),
                            with(test::random_array({40, 4}, 3), 36 * 4 + 1, kInfinity),
                            {},
                            {},
                            random_gradient({40, 4}, 4),
                            random_gradient({plan.weights}, 5)};
  const auto expect_agreement = [&](const std::string& name, size_t finite) {
    test::expect_same_on_both(
        name, inputs,
        [&](auto on, const Place& place, const std::vector<Array>& in) {
          const std::vector<Array> all = run_all(on, place, in, plan);
          EXPECT_TRUE(std::isfinite(test::numbers_of(all[0])[finite]));
          EXPECT_FALSE(std::isfinite(test::numbers_of(all[0])[39 * 4 + 1]));
          return all;
        },
        2e-5);
  };
  expect_agreement("value", 35 * 4 + 1);
  inputs[1] = with(inputs[1], 35 * 4, kNan);
  expect_agreement("key", 34 * 4 + 1);
  inputs[0] = with(inputs[0], 3 * 4, kNan);
  inputs[5] = with(inputs[5], 4 * 4, kNan);
  expect_agreement("query and dy", 2 * 4 + 1);
}

TEST_F(CudaAttention, FindsMasksAmongScores) {
  const auto agrees = [](std::vector<double> values, bool expected) {
    const Array x = Array::of<double>({static_cast<int64_t>(values.size())}, values);
    for (const DType dtype : {kFloat64, kFloat32, kBFloat16})
      EXPECT_EQ(backend::zeros_and_ones(Cuda{}, x.to(dtype).to(Device::cuda())), expected);
    EXPECT_EQ(backend::zeros_and_ones(Cpu{}, x), expected);
  };
  agrees({}, false);
  agrees({0, 0}, false);
  agrees({1}, true);
  std::vector<double> many(5000);
  many[4321] = 1;
  agrees(many, true);
  many[17] = 0.5;
  agrees(many, false);
}

}  // namespace
}  // namespace gs
