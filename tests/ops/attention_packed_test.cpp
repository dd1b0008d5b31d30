// Packed attention against dense attention, sentence by sentence.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "framework/backend/attention.h"
#include "framework/ops/attention.h"
#include "tests/support/devices.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

constexpr auto dense = scaled_dot_product_attention;

// Rows first to last - 1 of x (N, C) as a batch of one, (1, last - first, C).
Tensor rows_of(const Tensor& x, int64_t first, int64_t last) {
  const std::vector<float> values = x.values<float>();
  const int64_t width = x.size(1);
  return Tensor::of<float>(
      {1, last - first, width},
      std::vector<float>(values.begin() + first * width, values.begin() + last * width));
}

TEST(PackedAttention, IsDenseAttentionSentenceBySentence) {
  const std::vector<int32_t> queries{0, 4, 4, 5, 22, 22, 55}, keys{0, 7, 9, 9, 26, 27, 60};
  test::for_each_instruction_set([&] {
    for (const bool causal : {false, true}) {
      const AttentionOptions options{.heads = 3, .causal = causal, .return_weights = true};
      Tensor q = random_tensor<float>({55, 15}, 1).set_needs_grad();
      Tensor k = random_tensor<float>({60, 15}, 2).set_needs_grad();
      Tensor v = random_tensor<float>({60, 21}, 3).set_needs_grad();
      const Tensor dy = random_tensor<float>({55, 21}, 4);
      const Attention packed = packed_attention(q, queries, k, v, keys, options);
      packed.output.backward(dy);
      std::vector<float> output, weights, dq, dk, dv;
      for (size_t b = 0; b + 1 < queries.size(); ++b) {
        Tensor x[3] = {rows_of(q, queries[b], queries[b + 1]), rows_of(k, keys[b], keys[b + 1]),
                       rows_of(v, keys[b], keys[b + 1])};
        for (Tensor& tensor : x) tensor.set_needs_grad();
        const Attention alone = dense(x[0], x[1], x[2], options);
        alone.output.backward(rows_of(dy, queries[b], queries[b + 1]));
        const auto append = [](std::vector<float>& all, const Tensor& part) {
          const std::vector<float> values = part.values<float>();
          all.insert(all.end(), values.begin(), values.end());
        };
        append(output, alone.output);
        append(weights, alone.weights);
        append(dq, x[0].gradient());
        append(dk, x[1].gradient());
        append(dv, x[2].gradient());
      }
      // Bit for bit: nothing depends on the other sentences.
      EXPECT_EQ(packed.output.values<float>(), output);
      EXPECT_EQ(packed.weights.values<float>(), weights);
      EXPECT_EQ(q.gradient().values<float>(), dq);
      EXPECT_EQ(k.gradient().values<float>(), dk);
      EXPECT_EQ(v.gradient().values<float>(), dv);
    }
  });
}

// A sentence of three in a batch of five: what stands in the padding does not count.
TEST(PackedAttention, PaddingDoesNotChangeASentence) {
  test::for_each_instruction_set([] {
    for (const bool causal : {false, true}) {
      const Tensor x = random_tensor<float>({1, 3, 8}, 1);
      std::vector<float> padded = x.values<float>();
      padded.resize(40, NAN);
      Tensor wide = Tensor::of<float>({1, 5, 8}, padded).set_needs_grad();
      Tensor narrow = Tensor(x.value()).set_needs_grad();
      const Tensor y =
          dense(wide, wide, wide, {.heads = 2, .causal = causal, .key_lengths = {3}}).output;
      const Tensor z = dense(narrow, narrow, narrow, {.heads = 2, .causal = causal}).output;
      const std::vector<float> values = y.values<float>();
      EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 24), z.values<float>());
    }
    // Under a mask, and with gradients.
    std::vector<float> gradients[2];
    for (const int64_t length : {3, 5}) {
      std::vector<float> values = random_tensor<float>({1, 3, 8}, 1).values<float>();
      values.resize(static_cast<size_t>(length) * 8, 5);
      std::vector<float> upstream = random_tensor<float>({1, 3, 8}, 2).values<float>();
      upstream.resize(values.size(), 0);
      std::vector<bool> mask(static_cast<size_t>(length));
      std::fill_n(mask.begin(), 3, true);
      Tensor x = Tensor::of<float>({1, length, 8}, values).set_needs_grad();
      dense(x, x, x, {.heads = 2, .mask = Tensor::of<bool>({length}, mask)})
          .output.backward(Tensor::of<float>(x.shape(), upstream));
      std::vector<float>& gradient = gradients[length == 5];
      gradient = x.gradient().values<float>();
      for (size_t i = 24; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], 0);
      gradient.resize(24);
    }
    EXPECT_EQ(gradients[0], gradients[1]);
  });
}

// The same weights are dropped whatever else is asked for.
TEST(PackedAttention, DropoutDoesNotDependOnTheOtherOptions) {
  const Tensor x = random_tensor<float>({9, 4}, 1);
  const std::vector<int32_t> offsets{0, 4, 9};
  std::vector<float> first;
  for (const bool weights : {false, true}) {
    for (const bool needs_grad : {false, true}) {
      Generator generator(3);
      Tensor q = Tensor(x.value()).set_needs_grad(needs_grad);
      AttentionOptions options{
          .heads = 2, .dropout = 0.5, .training = true, .generator = &generator};
      options.return_weights = weights;
      const Tensor y = packed_attention(q, offsets, x, x, offsets, options).output;
      if (first.empty()) first = y.values<float>();
      EXPECT_EQ(y.values<float>(), first);
    }
  }
}

TEST(PackedAttention, RefusesOffsetsThatDoNotFit) {
  const Tensor x(Array::zeros({4, 2}, kFloat32));
  const auto message = [&](const std::vector<int32_t>& queries, const std::vector<int32_t>& keys) {
    return error_of([&] { packed_attention(x, queries, x, x, keys); });
  };
  EXPECT_EQ(message({0, 3}, {0, 4}),
            "packed_attention: query_offsets must run from 0 to the number of rows, 4, got 0 to 3");
  EXPECT_EQ(message({0, 4}, {1, 4}),
            "packed_attention: key_offsets must run from 0 to the number of rows, 4, got 1 to 4");
  EXPECT_EQ(message({}, {0, 4}),
            "packed_attention: query_offsets must run from 0 to the number of rows, 4, got none");
  EXPECT_EQ(message({0, 3, 2, 4}, {0, 1, 2, 4}),
            "packed_attention: query_offsets must not fall, got 3 before 2 at 1");
  EXPECT_EQ(message({0, 2, 4}, {0, 4}),
            "packed_attention: as many sequences of queries as of keys are needed, got 2 and 1");
  const std::vector<int32_t> offsets{0, 4};
  EXPECT_EQ(
      error_of([&] { packed_attention(x, offsets, x, x, offsets, {.key_lengths = {4}}); }),
      "packed_attention: key_lengths are for dense batches, got 1; key_offsets tell the lengths");
  EXPECT_EQ(error_of([&] {
              const Tensor batch(Array::zeros({1, 4, 2}, kFloat32));
              packed_attention(batch, offsets, x, x, offsets);
            }),
            "packed_attention: query, key and value need 2 dimensions, got [1, 4, 2], [4, 2] and "
            "[4, 2]");
  // No sequences at all.
  const Tensor none(Array::zeros({0, 2}, kFloat32));
  const std::vector<int32_t> nothing{0};
  EXPECT_EQ(packed_attention(none, nothing, none, none, nothing).output.shape(), (Shape{0, 2}));
}

// The table of sequences of these offsets on a device.
PlacedSequences placed(const std::vector<int32_t>& offsets, int64_t heads, Device device) {
  std::vector<backend::AttentionSequence> table;
  PlacedSequences sequences;
  int64_t weights = 0;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    const int64_t length = offsets[b + 1] - offsets[b];
    table.push_back({offsets[b], length, offsets[b], length, weights, length});
    weights += heads * length * length;
    sequences.longest_query = std::max(sequences.longest_query, length + 3);
  }
  sequences.count = static_cast<int64_t>(table.size());
  sequences.longest_key = sequences.longest_query;
  const int64_t bytes = sequences.count * int64_t{sizeof(backend::AttentionSequence)};
  Array words = Array::empty({bytes / 4}, kInt32);
  std::memcpy(words.raw(), table.data(), static_cast<size_t>(bytes));
  sequences.table = words.to(device);
  return sequences;
}

// Empty sequences and bounds that nobody reaches change nothing, with dropout and gradients.
TEST(PackedAttention, GoesWithSequencesThatOnlyTheDeviceKnows) {
  test::for_each_device([](Device device) {
    const std::vector<int32_t> offsets{0, 3, 3, 40, 41, 41};
    const auto run = [&](const auto& attend) {
      Generator generator(9);
      Tensor x = random_tensor<float>({41, 8}, 1).to(device).detach();
      x.set_needs_grad();
      const Attention attention = attend(x, AttentionOptions{.heads = 2,
                                                             .causal = true,
                                                             .dropout = 0.4,
                                                             .training = true,
                                                             .generator = &generator});
      attention.output.backward(random_tensor<float>({41, 8}, 2).to(device));
      return std::pair(attention.output.values<float>(), x.gradient().values<float>());
    };
    const auto expected = run([&](const Tensor& x, const AttentionOptions& options) {
      return packed_attention(x, offsets, x, x, offsets, options);
    });
    const PlacedSequences sequences = placed(offsets, 2, device);
    EXPECT_EQ(run([&](const Tensor& x, const AttentionOptions& options) {
                return packed_attention(x, x, x, sequences, options);
              }),
              expected);
  });
}

TEST(PackedAttention, RefusesTablesThatDoNotFit) {
  const Tensor x(Array::zeros({4, 2}, kFloat32));
  PlacedSequences sequences = placed({0, 1, 4}, 1, Device::cpu());
  EXPECT_EQ(
      error_of([&] { packed_attention(x, x, x, sequences, {.return_weights = true}); }),
      "packed_attention: sequences on the device go without mask, scores, key_lengths and weights; "
      "give offsets");
  sequences.count = 3;
  EXPECT_EQ(error_of([&] { packed_attention(x, x, x, sequences); }),
            "packed_attention: the table of 3 sequences must be 144 bytes on cpu, got 96 on cpu");
  sequences.table = Array();
  EXPECT_EQ(error_of([&] { packed_attention(x, x, x, sequences); }),
            "packed_attention: the table of 3 sequences must be 144 bytes on cpu, got 0 on cpu");
}

}  // namespace
}  // namespace gs
