#include "models/placed_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/models/small_models.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::sequences;
using test::small_config;

Batch batch_of(const std::vector<std::vector<int32_t>>& source,
               const std::vector<std::vector<int32_t>>& target) {
  std::vector<int64_t> pairs;
  for (size_t i = 0; i < source.size(); ++i) pairs.push_back(static_cast<int64_t>(i));
  return make_batch(sequences(source), sequences(target), pairs);
}

// Sentences of different lengths, an empty one among them.
Batch small_batch() {
  return batch_of({{4, 5, 6}, {}, {7, 8, 9, 10, 11, 12, 4, 5}, {6}},
                  {{4, 5}, {6, 7, 8, 9}, {}, {10}});
}

PlacedBatch placed(const Batch& batch, const BatchForm& form, Device device,
                   const TransformerConfig& config = small_config()) {
  std::vector<std::byte> bytes(static_cast<size_t>(form.bytes()));
  write_batch(batch, form, config, bytes.data());
  const Array array = [&] {
    Array copy = Array::empty({form.bytes() / 4}, kInt32);
    std::memcpy(copy.raw(), bytes.data(), bytes.size());
    return copy.to(device);
  }();
  return place_batch(form, static_cast<const std::byte*>(array.raw()), device);
}

TEST(BatchForm, RoundsUp) {
  const BatchForm form = BatchForm::of(small_batch());
  EXPECT_EQ(form.sizes(), (std::vector<int64_t>{64, 64, 8, 16, 16}));
  std::vector<std::vector<int32_t>> many(700, {4, 5, 6});
  // 4 rows a pair, with a mark each: 2800 of 2816, and one sequence for the 16 others.
  EXPECT_EQ(BatchForm::of(batch_of(many, many)).sizes(),
            (std::vector<int64_t>{2816, 2816, 1024, 16, 16}));
  const std::vector<int32_t> long_one(19, 4);
  EXPECT_EQ(BatchForm::of(batch_of({long_one}, {{4}})).sizes(),
            (std::vector<int64_t>{64, 64, 8, 32, 16}));
}

// What is added changes neither loss nor gradients, with the same dropout.
TEST(PlacedBatch, ComputesTheSameAsTheBatch) {
  test::for_each_device([](Device device) {
    for (const double dropout : {0.0, 0.3}) {
      TransformerConfig config = small_config();
      config.dropout = config.attention_dropout = config.activation_dropout = dropout;
      const auto transformer = test::small_transformer(3, config);
      transformer->to(device);
      transformer->train();
      const Batch batch = small_batch();
      const std::vector<int32_t>& labels = batch.target_labels.tokens;
      const auto gradients = [&](const Loss& loss) {
        loss.mean().backward();
        std::vector<double> all;
        for (const auto& named : transformer->parameters()) {
          const std::vector<double> values = named.parameter->tensor().gradient().values<double>();
          all.insert(all.end(), values.begin(), values.end());
        }
        transformer->clear_gradients();
        return all;
      };
      set_seed(11);
      const Loss expected = transformer->loss(
          batch.target_inputs, transformer->encode(batch.source),
          Tensor::of<int32_t>({static_cast<int64_t>(labels.size())}, labels).to(device),
          {.label_smoothing = 0.1});
      const std::vector<double> expected_gradients = gradients(expected);
      const RandomState drawn = default_generator().state();
      set_seed(11);
      const BatchForm form = BatchForm::of(batch);
      const Loss actual = transformer->loss(
          placed(batch, form, device), {.ignore_index = kIgnoredLabel, .label_smoothing = 0.1});
      EXPECT_EQ(default_generator().state(), drawn);
      EXPECT_EQ(actual.count, 11);
      EXPECT_EQ(actual.correct, expected.correct);
      EXPECT_NEAR(actual.sum.item(), expected.sum.item(), 1e-5 * expected.sum.item());
      EXPECT_NEAR(actual.negative_log_likelihood_sum.item(),
                  expected.negative_log_likelihood_sum.item(), 1e-4);
      const std::vector<double> actual_gradients = gradients(actual);
      ASSERT_EQ(actual_gradients.size(), expected_gradients.size());
      double largest = 0;
      for (const double gradient : expected_gradients)
        largest = std::max(largest, std::abs(gradient));
      for (size_t i = 0; i < actual_gradients.size(); ++i)
        ASSERT_NEAR(actual_gradients[i], expected_gradients[i], 1e-5 * largest) << i;
    }
  });
}

// The device does not look whether a position is in the model's table.
TEST(PlacedBatch, AddedRowsHavePositionsThatTheModelKnows) {
  TransformerConfig config = small_config();
  config.maximum_length = 9;  // of the longest sentence with its mark; the form rounds it up to 16
  const Batch batch = small_batch();
  const PlacedBatch there = placed(batch, BatchForm::of(batch), Device::cpu(), config);
  for (const Tensor& positions : {there.source_positions, there.target_positions}) {
    const std::vector<int32_t> values = positions.value().values<int32_t>();
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 8);
  }
}

TEST(PlacedBatch, RefusesWhatTheDeviceWouldNotSee) {
  const BatchForm form = BatchForm::of(small_batch());
  std::vector<std::byte> place(static_cast<size_t>(form.bytes()));
  const auto error = [&](const auto& change) {
    Batch batch = small_batch();
    change(batch);
    return error_of([&] { write_batch(batch, form, small_config(), place.data()); });
  };
  EXPECT_EQ(error([](Batch& batch) { batch.source.tokens[2] = 13; }),
            "batch: source token 13 at position 2 is outside 0..12");
  EXPECT_EQ(error([](Batch& batch) { batch.target_inputs.tokens[1] = -1; }),
            "batch: target token -1 at position 1 is outside 0..10");
  EXPECT_EQ(error([](Batch& batch) { batch.target_labels.tokens[0] = 11; }),
            "batch: label token 11 at position 0 is outside 0..10");
  EXPECT_EQ(error([](Batch& batch) { batch.source.append(std::vector<int32_t>(25, 4)); }),
            "batch: a source of 25 tokens is longer than the limit of 24; shorten it, or make the "
            "model with a larger maximum length");
  EXPECT_EQ(error([](Batch& batch) { batch.target_labels.append(std::vector<int32_t>{4}); }),
            "batch: needs a target for each source and a label for each target token, got 4 "
            "sources, 4 targets and 12 labels for 11 tokens");
}

}  // namespace
}  // namespace gs
