#include "models/transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "datasets/batches.h"
#include "framework/ops/cross_entropy.h"
#include "tests/models/small_models.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::rows_of;
using test::sequences;
using test::small_config;
using test::small_transformer;
using testing::HasSubstr;

const std::vector<std::vector<int32_t>> kSources{
    {5, 6, 7, 2}, {8, 4, 9, 12, 3, 10, 2}, {2}, {11, 4, 2}};
const std::vector<std::vector<int32_t>> kTargets{{1, 5, 6}, {1, 7}, {1, 4, 10, 9, 8, 3}, {1}};

Tensor labels_of(const std::vector<std::vector<int32_t>>& targets) {
  const Sequences packed = sequences(targets);
  std::vector<int32_t> labels(packed.tokens.size());
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(3 + (5 * i) % 8);
  return Tensor::of<int32_t>({static_cast<int64_t>(labels.size())}, labels);
}

void expect_independence(bool pre_norm, DType dtype, double tolerance) {
  TransformerConfig config = small_config();
  config.pre_norm = pre_norm;
  const auto model = small_transformer(1, config);
  model->to(dtype);
  const Tensor all = (*model)(sequences(kSources), sequences(kTargets));
  const Tensor memory = model->encode(sequences(kSources)).memory;
  int64_t row = 0, source_row = 0;
  for (size_t i = 0; i < kSources.size(); ++i) {
    const int64_t length = static_cast<int64_t>(kTargets[i].size());
    const int64_t source_length = static_cast<int64_t>(kSources[i].size());
    const EncodedSource encoded = model->encode(sequences({kSources[i]}));
    expect_near(encoded.memory, rows_of(memory, source_row, source_length), tolerance);
    expect_near(model->decode(sequences({kTargets[i]}), encoded), rows_of(all, row, length),
                tolerance);
    row += length;
    source_row += source_length;
  }
}

// OpenNMT/OpenNMT-py#318, facebookresearch/fairseq#427
TEST(Transformer, NoSentenceDependsOnItsBatch) {
  for (const bool pre_norm : {true, false}) {
    // What remains is the rounding of matrix products of another size.
    expect_independence(pre_norm, kFloat32, 1e-5);
    expect_independence(pre_norm, kFloat64, 1e-13);
  }
}

// The gradient of a batch is the sum of its sentences' gradients; rows of the tables that no token
// names, the padding's among them, get exactly 0.
// marian-nmt/marian-dev#311
TEST(Transformer, GradientsOfABatchAreThoseOfItsSentences) {
  TransformerConfig config = small_config();
  config.tie_output = false;
  const auto model = small_transformer(2, config);
  const auto collect = [&] {
    std::vector<std::vector<double>> gradients;
    for (const auto& named : model->parameters())
      gradients.push_back(named.parameter->tensor().gradient().values<double>());
    model->clear_gradients();
    return gradients;
  };
  const std::vector<int32_t> labels = labels_of(kTargets).values<int32_t>();
  cross_entropy((*model)(sequences(kSources), sequences(kTargets)), labels_of(kTargets))
      .sum.backward();
  const auto together = collect();
  size_t row = 0;
  for (size_t i = 0; i < kSources.size(); ++i) {
    const std::vector<int32_t> own(labels.begin() + static_cast<int64_t>(row),
                                   labels.begin() + static_cast<int64_t>(row + kTargets[i].size()));
    row += kTargets[i].size();
    cross_entropy((*model)(sequences({kSources[i]}), sequences({kTargets[i]})),
                  Tensor::of<int32_t>({static_cast<int64_t>(own.size())}, own))
        .sum.backward();
  }
  const auto apart = collect();
  ASSERT_EQ(together.size(), apart.size());
  for (size_t i = 0; i < together.size(); ++i) {
    for (size_t k = 0; k < together[i].size(); ++k)
      ASSERT_NEAR(together[i][k], apart[i][k], 2e-5) << model->parameters()[i].path;
  }
  const size_t width = static_cast<size_t>(config.width);
  ASSERT_EQ(model->parameters()[0].path, "source_embedding/weight");
  for (const size_t unused : {0, 1}) {
    for (size_t c = 0; c < width; ++c) EXPECT_EQ(together[0][unused * width + c], 0);
  }
  EXPECT_NE(together[0][5 * width], 0);
}

// The loss is that of the logits, whatever the output layer is made of.
TEST(Transformer, LossIsTheCrossEntropyOfItsLogits) {
  for (const bool tie_output : {true, false}) {
    for (const bool output_bias : {true, false}) {
      TransformerConfig config = small_config();
      config.tie_output = tie_output;
      config.output_bias = output_bias;
      const auto model = small_transformer(2, config);
      const CrossEntropyOptions options{.ignore_index = 3, .label_smoothing = 0.1};
      const auto gradients_of = [&](const Loss& loss) {
        loss.mean().backward();
        std::vector<double> all{loss.sum.item(), static_cast<double>(loss.count)};
        for (const auto& named : model->parameters()) {
          const auto values = named.parameter->tensor().gradient().values<double>();
          all.insert(all.end(), values.begin(), values.end());
        }
        model->clear_gradients();
        return all;
      };
      const auto expected = gradients_of(cross_entropy(
          (*model)(sequences(kSources), sequences(kTargets)), labels_of(kTargets), options));
      const auto actual = gradients_of(model->loss(
          sequences(kTargets), model->encode(sequences(kSources)), labels_of(kTargets), options));
      ASSERT_EQ(actual.size(), expected.size());
      for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-5);
    }
  }
}

// Nothing reads the row of the padding token.
// facebookresearch/fairseq#3078
TEST(Transformer, ThePaddingRowIsNeverRead) {
  TransformerConfig config = small_config();
  config.tie_output = false;
  const auto model = small_transformer(3, config);
  const Tensor before = (*model)(sequences(kSources), sequences(kTargets));
  for (const auto& named : model->parameters()) {
    if (!named.path.ends_with("embedding/weight")) continue;
    Array table = named.parameter->tensor().value();
    std::fill_n(table.data<float>(), config.width, std::numeric_limits<float>::quiet_NaN());
  }
  const Tensor after = (*model)(sequences(kSources), sequences(kTargets));
  EXPECT_EQ(before.values<float>(), after.values<float>());
}

// bentrevett/pytorch-seq2seq#46, jadore801120/attention-is-all-you-need-pytorch#123
TEST(Transformer, LabelsAreShiftedAndUnseen) {
  const auto model = small_transformer(4);
  const std::vector<int64_t> pair{0};
  const Sequences source = sequences({{4, 5}});
  const Batch batch = make_batch(source, sequences({{5, 6, 7}}), pair);
  EXPECT_EQ(batch.target_inputs.tokens, (std::vector<int32_t>{1, 5, 6, 7}));
  EXPECT_EQ(batch.target_labels.tokens, (std::vector<int32_t>{5, 6, 7, 2}));
  const Tensor logits = (*model)(batch.source, batch.target_inputs);
  for (size_t t = 0; t < 3; ++t) {
    std::vector<int32_t> words{5, 6, 7};
    words[t] = 9;
    const Batch changed = make_batch(source, sequences({words}), pair);
    ASSERT_EQ(changed.target_labels.tokens[t], 9);
    const Tensor other = (*model)(changed.source, changed.target_inputs);
    const int64_t same = static_cast<int64_t>(t) + 1;
    EXPECT_EQ(rows_of(logits, 0, same), rows_of(other, 0, same)) << t;
    EXPECT_NE(rows_of(logits, same, 1), rows_of(other, same, 1)) << t;
  }
}

// meta-pytorch/torchtune#959, lucidrains/x-transformers#311
TEST(Transformer, StepByStepEqualsTheWholePass) {
  for (const bool pre_norm : {true, false}) {
    for (const bool learned : {false, true}) {
      TransformerConfig config = small_config();
      config.pre_norm = pre_norm;
      config.learned_positions = learned;
      const auto model = small_transformer(5, config);
      const NoGrad no_grad;
      const std::vector<std::vector<int32_t>> targets{
          {1, 5, 6, 7, 3, 9}, {1, 4, 4, 10, 8, 5}, {1, 9, 8, 7, 6, 5}, {1, 3, 3, 3, 3, 3}};
      const EncodedSource encoded = model->encode(sequences(kSources));
      const Tensor whole = model->decode(sequences(targets), encoded);
      DecoderState state = model->begin(encoded);
      for (int64_t t = 0; t < 6; ++t) {
        std::vector<int32_t> tokens;
        for (const auto& target : targets) tokens.push_back(target[static_cast<size_t>(t)]);
        const Tensor logits = model->step(tokens, state);
        for (int64_t b = 0; b < 4; ++b) {
          const std::vector<double> stepped = rows_of(logits, b, 1),
                                    expected = rows_of(whole, b * 6 + t, 1);
          for (size_t v = 0; v < expected.size(); ++v) ASSERT_NEAR(stepped[v], expected[v], 1e-5);
          EXPECT_EQ(std::max_element(stepped.begin(), stepped.end()) - stepped.begin(),
                    std::max_element(expected.begin(), expected.end()) - expected.begin());
        }
      }
      EXPECT_EQ(state.position, 6);
    }
  }
}

// Rows are repeated, reordered and left out between steps, as a beam search does.
// lucidrains/x-transformers#322
TEST(Transformer, SelectedRowsGoOnAsTheWholePass) {
  const auto model = small_transformer(6);
  const NoGrad no_grad;
  const std::vector<std::vector<int32_t>> sources{{5, 6, 7, 2}, {8, 4, 9, 12, 3, 2}, {10, 2}};
  DecoderState state = model->begin(model->encode(sequences(sources)));
  struct Row {
    size_t sentence;
    std::vector<int32_t> tokens;
  };
  std::vector<Row> rows{{0, {}}, {1, {}}, {2, {}}};
  const auto step = [&](const std::vector<int32_t>& tokens) {
    const Tensor logits = model->step(tokens, state);
    for (size_t r = 0; r < rows.size(); ++r) {
      rows[r].tokens.push_back(tokens[r]);
      const Tensor whole =
          (*model)(sequences({sources[rows[r].sentence]}), sequences({rows[r].tokens}));
      const std::vector<double> expected = rows_of(whole, whole.size(0) - 1, 1),
                                stepped = rows_of(logits, static_cast<int64_t>(r), 1);
      for (size_t v = 0; v < expected.size(); ++v)
        ASSERT_NEAR(stepped[v], expected[v], 1e-5) << "row " << r;
    }
  };
  const auto select = [&](const std::vector<int32_t>& chosen, std::vector<int32_t> offsets) {
    std::vector<Row> next;
    for (const int32_t row : chosen) next.push_back(rows[static_cast<size_t>(row)]);
    rows = next;
    Transformer::select(state, chosen, std::move(offsets));
  };
  step({1, 1, 1});
  select({0, 0, 1, 2, 2, 2}, {0, 2, 3, 6});
  step({5, 6, 7, 8, 9, 10});
  select({1, 0, 2, 2, 5, 3}, {0, 2, 4, 6});
  step({4, 3, 9, 5, 6, 7});
  select({3, 2, 4}, {0, 0, 2, 3});  // the first sentence has ended
  step({5, 9, 3});
  select({1}, {0, 0, 1, 1});
  step({10});
}

TEST(Transformer, AStepGivesTheMostProbableTokensOfItsLogits) {
  for (const bool tied : {true, false}) {
    for (const bool with_bias : {true, false}) {
      TransformerConfig config = small_config();
      config.tie_output = tied;
      config.output_bias = with_bias;
      const auto model = small_transformer(8, config);
      const NoGrad no_grad;
      if (with_bias) {  // 0 until it is trained
        for (const auto& named : model->named_parameters()) {
          if (named.path != "output/bias") continue;
          Array bias = named.parameter->tensor().value();
          for (int64_t v = 0; v < 11; ++v) bias.data<float>()[v] = 0.3f * static_cast<float>(v % 4);
        }
      }
      const EncodedSource encoded = model->encode(sequences(kSources));
      DecoderState whole = model->begin(encoded), top = model->begin(encoded);
      for (const std::vector<int32_t>& tokens :
           {std::vector<int32_t>{1, 1, 1, 1}, {5, 6, 7, 8}, {9, 3, 10, 4}}) {
        const TopLogSoftmax expected = top_log_softmax(model->step(tokens, whole), 5);
        const TopLogSoftmax actual = model->step(tokens, top, 5);
        EXPECT_EQ(actual.classes.values<int32_t>(), expected.classes.values<int32_t>());
        expect_near(actual.log_probabilities, expected.log_probabilities.values<double>(), 1e-5);
      }
    }
  }
}

TEST(Transformer, TakesEmptyBatchesAndEmptySentences) {
  const auto model = small_transformer(7);
  const Tensor none = (*model)(Sequences(), Sequences());
  EXPECT_EQ(none.shape(), Shape({0, 11}));
  const Loss loss = cross_entropy(none, Tensor::of<int32_t>({0}, {}));
  loss.mean().backward();
  model->clear_gradients();
  {
    const NoGrad no_grad;
    DecoderState state = model->begin(model->encode(Sequences()));
    EXPECT_EQ(model->step({}, state).shape(), Shape({0, 11}));
  }

  const std::vector<std::vector<int32_t>> sources{{}, {5, 2}, {}}, targets{{1, 4}, {}, {1}};
  const Tensor logits = (*model)(sequences(sources), sequences(targets));
  EXPECT_EQ(logits.shape(), Shape({3, 11}));
  expect_near((*model)(sequences({{}}), sequences({{1, 4}})), rows_of(logits, 0, 2), 1e-6);
  for (const double value : logits.values<double>()) EXPECT_TRUE(std::isfinite(value));
}

TEST(Transformer, TiesWhatItIsToldTo) {
  TransformerConfig config = small_config();
  config.target_vocabulary = config.source_vocabulary;
  config.share_embeddings = config.output_bias = true;
  const auto shared = small_transformer(9, config);
  const auto weight_of = [&](const Transformer& model, const std::string& path) {
    for (const auto& named : model.named_parameters()) {
      if (named.path == path) return named.parameter->tensor();
    }
    return Tensor();
  };
  EXPECT_TRUE(weight_of(*shared, "target_embedding/weight")
                  .shares_storage(weight_of(*shared, "source_embedding/weight")));
  EXPECT_TRUE(weight_of(*shared, "output/weight")
                  .shares_storage(weight_of(*shared, "source_embedding/weight")));
  config.share_embeddings = false;
  const auto separate = small_transformer(9, config);
  EXPECT_FALSE(weight_of(*separate, "target_embedding/weight")
                   .shares_storage(weight_of(*separate, "source_embedding/weight")));
  EXPECT_EQ(separate->parameter_count() - shared->parameter_count(), 13 * 12);
  EXPECT_FALSE(weight_of(*small_transformer(9), "output/weight").defined());
}

TEST(Transformer, DropoutChangesTrainingAlone) {
  TransformerConfig config = small_config();
  config.dropout = config.attention_dropout = config.activation_dropout = 0.2;
  const auto model = small_transformer(10, config);
  const auto run = [&] {
    return (*model)(sequences(kSources), sequences(kTargets)).values<float>();
  };
  EXPECT_EQ(run(), run());
  model->train();
  set_seed(1);
  const std::vector<float> first = run(), second = run();
  EXPECT_NE(first, second);
  set_seed(1);
  EXPECT_EQ(run(), first);
}

TEST(Transformer, RefusesWhatDoesNotFit) {
  const auto made = [](auto change) {
    TransformerConfig config = small_config();
    change(config);
    return error_of([&] { Transformer model(config); });
  };
  EXPECT_THAT(made([](auto& c) { c.source_vocabulary = 0; }),
              HasSubstr("transformer: vocabularies must not be empty, got 0 and 11"));
  EXPECT_THAT(made([](auto& c) { c.width = 0; }),
              HasSubstr("must be at least 1, got 0, 20 and 24"));
  EXPECT_THAT(made([](auto& c) { c.decoder_layers = 0; }), HasSubstr("needs a decoder layer"));
  EXPECT_THAT(made([](auto& c) { c.share_embeddings = true; }),
              HasSubstr("shared embeddings need one vocabulary, got sizes 13 and 11"));
  EXPECT_THAT(made([](auto& c) { c.heads = 5; }), HasSubstr("5"));
  EXPECT_THAT(made([](auto& c) { c.heads = 0; }), HasSubstr("0"));
  EXPECT_THAT(made([](auto& c) { c.dropout = 1; }), HasSubstr("dropout must be in [0, 1), got 1"));
  EXPECT_THAT(made([](auto& c) { c.attention_dropout = -0.1; }), HasSubstr("got -0.1"));
  EXPECT_THAT(made([](auto& c) { c.activation_dropout = std::nan(""); }), HasSubstr("got nan"));
  EXPECT_THAT(made([](auto& c) { c.embedding_dropout = 1; }), HasSubstr("got 1"));

  const auto model = small_transformer(11);
  const Sequences one = sequences({{5, 2}}), begin = sequences({{1}});
  EXPECT_EQ(error_of([&] {
              (*model)(one, sequences({{1}, {1}}));
            }),
            "transformer: needs a target for each source, got 2 and 1");
  EXPECT_THAT(error_of([&] { (*model)(sequences({{13}}), begin); }), HasSubstr("13"));
  EXPECT_THAT(error_of([&] { (*model)(one, sequences({{-1}})); }), HasSubstr("-1"));
  const std::vector<int32_t> long_sentence(25, 4);
  EXPECT_THAT(error_of([&] { (*model)(sequences({long_sentence}), begin); }),
              HasSubstr("a sequence of 25 is longer than the limit of 24"));
  DecoderState state = model->begin(model->encode(one));
  const std::vector<int32_t> two{1, 1};
  EXPECT_EQ(error_of([&] { model->step(two, state); }),
            "transformer: needs a token for each of 1 rows, got 2");
}

TEST(Transformer, StepsEndAtTheLongestLength) {
  TransformerConfig config = small_config();
  config.maximum_length = 3;
  const auto model = small_transformer(12, config);
  const NoGrad no_grad;
  DecoderState state = model->begin(model->encode(sequences({{5, 2}})));
  const std::vector<int32_t> token{1};
  for (int i = 0; i < 3; ++i) model->step(token, state);
  EXPECT_THAT(error_of([&] { model->step(token, state); }), HasSubstr("limit of 3"));
}

}  // namespace
}  // namespace gs
