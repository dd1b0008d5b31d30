#include "framework/nn/transformer_layers.h"

#include <gtest/gtest.h>

#include "framework/nn/embedding.h"
#include "framework/ops/reshape.h"
#include "framework/ops/slice.h"
#include "framework/optim/adam.h"
#include "tests/support/module_case.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using nn::AttentionContext;
using nn::TransformerDecoderLayer;
using nn::TransformerEncoderLayer;
using nn::TransformerLayerConfig;
using test::check_module;
using test::error_of;
using test::expect_near;
using test::expect_pytorch_module;
using test::FixtureInputs;
using test::random_tensor;

using Offsets = std::vector<int32_t>;
using Outputs = std::map<std::string, Tensor>;

const TransformerLayerConfig kSmall{.width = 6, .heads = 2, .feed_forward_width = 7};

std::vector<TransformerLayerConfig> forms() {
  std::vector<TransformerLayerConfig> result;
  for (const bool pre_norm : {true, false}) {
    for (const auto activation : {nn::Activation::kRelu, nn::Activation::kGelu}) {
      result.push_back(kSmall);
      result.back().pre_norm = pre_norm;
      result.back().activation = activation;
    }
  }
  return result;
}

std::string name_of(const TransformerLayerConfig& form) {
  return std::string(form.pre_norm ? "pre_norm_" : "post_norm_") +
         (form.activation == nn::Activation::kRelu ? "relu" : "gelu");
}

template <typename Layer>
void prepare(Layer& layer, uint64_t seed = 1) {
  layer.to(kFloat64);
  test::randomize(layer, seed);
}

Tensor batch_of_one(const Tensor& rows) { return reshape(rows, {1, rows.size(0), rows.size(1)}); }

TEST(TransformerLayers, EncoderAgreesWithPyTorch) {
  for (const TransformerLayerConfig& form : forms()) {
    TransformerEncoderLayer layer(form);
    expect_pytorch_module(
        "modules", "encoder_layer_" + name_of(form), layer, [&](const FixtureInputs& inputs) {
          return Outputs{{"output", layer(inputs["x"], {.mask = inputs["mask"]})}};
        });
  }
}

TEST(TransformerLayers, DecoderAgreesWithPyTorch) {
  for (const TransformerLayerConfig& form : forms()) {
    TransformerDecoderLayer layer(form);
    expect_pytorch_module(
        "modules", "decoder_layer_" + name_of(form), layer, [&](const FixtureInputs& inputs) {
          return Outputs{{"output", layer(inputs["x"], inputs["memory"], {.causal = true},
                                          {.mask = inputs["memory_mask"]})}};
        });
  }
}

TEST(TransformerLayers, GradientsAreRight) {
  const Tensor x = random_tensor<double>({2, 3, 6}, 1),
               memory = random_tensor<double>({2, 4, 6}, 2);
  for (const TransformerLayerConfig& form : forms()) {
    SCOPED_TRACE(name_of(form));
    TransformerEncoderLayer encoder(form);
    check_module(encoder,
                 [&](const std::vector<Tensor>& in) {
                   return encoder(in[0], {.key_lengths = {3, 2}});
                 },
                 {x});
    TransformerDecoderLayer decoder(form);
    check_module(decoder,
                 [&](const std::vector<Tensor>& in) {
                   return decoder(in[0], in[1], {.causal = true}, {.key_lengths = {2, 4}});
                 },
                 {x, memory});
  }
}

TEST(TransformerLayers, GradientsAreRightForPackedSequencesAndWithDropout) {
  const Offsets targets{0, 2, 5}, sources{0, 4, 5};
  TransformerLayerConfig dropping = kSmall;
  dropping.dropout = dropping.attention_dropout = dropping.activation_dropout = 0.2;
  for (const TransformerLayerConfig& form : {kSmall, dropping}) {
    TransformerDecoderLayer decoder(form);
    check_module(decoder,
                 [&](const std::vector<Tensor>& x) {
                   return decoder(
                       x[0], x[1],
                       {.query_offsets = targets, .key_offsets = targets, .causal = true},
                       {.query_offsets = targets, .key_offsets = sources});
                 },
                 {random_tensor<double>({5, 6}, 1), random_tensor<double>({5, 6}, 2)});
  }
}

TEST(TransformerLayers, PackedSequencesEqualEachByItself) {
  TransformerEncoderLayer encoder(kSmall);
  TransformerDecoderLayer decoder(kSmall);
  prepare(encoder);
  prepare(decoder);
  const Offsets sources{0, 4, 5, 7}, targets{0, 2, 5, 6};
  const Tensor x = random_tensor<double>({7, 6}, 1), y = random_tensor<double>({6, 6}, 2);
  const Tensor memory = encoder(x, {.query_offsets = sources, .key_offsets = sources});
  const Tensor decoded =
      decoder(y, memory, {.query_offsets = targets, .key_offsets = targets, .causal = true},
              {.query_offsets = targets, .key_offsets = sources});
  for (size_t b = 0; b < 3; ++b) {
    const Tensor its = encoder(batch_of_one(slice(x, 0, sources[b], sources[b + 1])), {});
    expect_near(its, slice(memory, 0, sources[b], sources[b + 1]).values<double>(), 1e-12);
    const Tensor one = batch_of_one(slice(y, 0, targets[b], targets[b + 1]));
    expect_near(decoder(one, its, {.causal = true}, {}),
                slice(decoded, 0, targets[b], targets[b + 1]).values<double>(), 1e-12);
  }
}

// An embedding with a padding row before a layer, as in a padded batch.
struct PaddedModel : nn::Module {
  nn::Child<nn::Embedding> embedding{*this, "embedding", 9, 6,
                                     nn::Embedding::Config{.padding_index = 0}};
  nn::Child<TransformerEncoderLayer> encoder{*this, "encoder", kSmall};
  nn::Child<TransformerDecoderLayer> decoder{*this, "decoder", kSmall};

  Tensor operator()(const std::vector<int32_t>& tokens, int64_t length) const {
    const Shape shape{1, static_cast<int64_t>(tokens.size())};
    const Tensor x = (*embedding)(Tensor::of<int32_t>(shape, tokens));
    const Tensor memory = (*encoder)(x, {.key_lengths = {length}});
    return (*decoder)(x, memory, {.causal = true, .key_lengths = {length}},
                      {.key_lengths = {length}});
  }
};

// OpenNMT/OpenNMT-py#318, #2208; facebookresearch/fairseq#427; marian-nmt/marian-dev#311. The
// padding row: pytorch/pytorch#26302, #6411.
TEST(TransformerLayers, PaddingChangesNothingAndIsNotTrained) {
  PaddedModel model;
  prepare(model);
  Adam optimizer(model, {.learning_rate = 0.01, .weight_decay = 0.1});
  const std::vector<int32_t> sentence{3, 8, 1};
  std::vector<int32_t> padded = sentence;
  padded.resize(7, 0);
  const Tensor upstream = random_tensor<double>({1, 3, 6}, 2);
  std::vector<double> padded_upstream = upstream.values<double>();
  padded_upstream.resize(42);
  for (const double padding : {0.0, 1.0, 1e6}) {
    std::vector<double> table = model.embedding->weight->values<double>();
    std::fill_n(table.begin(), 6, padding);
    model.embedding->weight->assign(Tensor::of<double>({9, 6}, table));

    const Tensor alone = model(sentence, 3);
    alone.backward(upstream);
    std::vector<std::vector<double>> gradients;
    for (const auto& [path, parameter] : model.parameters()) {
      gradients.push_back((*parameter)->gradient().values<double>());
    }
    model.clear_gradients();
    const Tensor batch = model(padded, 3);
    expect_near(slice(batch, 1, 0, 3), alone.values<double>(), 1e-12);
    batch.backward(Tensor::of<double>({1, 7, 6}, padded_upstream));
    size_t i = 0;
    for (const auto& [path, parameter] : model.parameters()) {
      SCOPED_TRACE(path);
      expect_near((*parameter)->gradient(), gradients[i++], 1e-10);
    }
    const std::vector<double> dtable = model.embedding->weight->gradient().values<double>();
    EXPECT_EQ(std::vector<double>(dtable.begin(), dtable.begin() + 6), std::vector<double>(6));
    optimizer.step();
    const std::vector<double> after = model.embedding->weight->values<double>();
    EXPECT_EQ(std::vector<double>(after.begin(), after.begin() + 6),
              std::vector<double>(6, padding));
    EXPECT_NE(after[18], table[18]);
  }
}

// Two decoder layers, token by token.
struct Decoder {
  Decoder() {
    for (int64_t i = 0; i < 2; ++i) prepare(layers[i], static_cast<uint64_t>(100 * i + 1));
  }

  Tensor whole(Tensor x, const Tensor& memory, const Offsets& offsets,
               const Offsets& memory_offsets) const {
    for (int64_t i = 0; i < 2; ++i) {
      x = layers[i](x, memory, {.query_offsets = offsets, .key_offsets = offsets, .causal = true},
                    {.query_offsets = offsets, .key_offsets = memory_offsets});
    }
    return x;
  }

  std::vector<nn::DecoderLayerCache> caches(const Tensor& memory) const {
    std::vector<nn::DecoderLayerCache> result;
    for (int64_t i = 0; i < 2; ++i) {
      result.push_back({{}, layers[i].cross_attention->project(memory, memory)});
    }
    return result;
  }

  Tensor step(Tensor x, std::vector<nn::DecoderLayerCache>& caches,
              const std::vector<int32_t>& rows, const Offsets& memory_offsets) const {
    const NoGrad no_grad;
    Offsets offsets;
    for (int32_t row = 0; row <= x.size(0); ++row) offsets.push_back(row);
    for (int64_t i = 0; i < 2; ++i) {
      x = layers[i].step(x, caches[static_cast<size_t>(i)], rows,
                         {.query_offsets = offsets, .key_offsets = memory_offsets});
    }
    return x;
  }

  nn::ChildList<TransformerDecoderLayer> layers{2, kSmall};
};

// meta-pytorch/torchtune#959; lucidrains/x-transformers#311, #322
TEST(TransformerLayers, DecodingStepByStepEqualsTheWholePass) {
  const Decoder decoder;
  const Tensor x = random_tensor<double>({12, 6}, 1), memory = random_tensor<double>({5, 6}, 2);
  const Offsets offsets{0, 6, 12}, memory_offsets{0, 4, 5};
  const Tensor whole = decoder.whole(x, memory, offsets, memory_offsets);
  auto caches = decoder.caches(memory);
  for (int64_t t = 0; t < 6; ++t) {
    std::vector<int32_t> rows(static_cast<size_t>(t) + 1, 0);
    rows.insert(rows.end(), static_cast<size_t>(t) + 1, 1);
    const Tensor y = decoder.step(slice(x, 0, t, 12, 6), caches, rows, memory_offsets);  // (R, C)
    expect_near(y, slice(whole, 0, t, 12, 6).values<double>(), 1e-12);
  }
}

// The same with a beam that changes its places: hypothesis 1 goes on twice.
TEST(TransformerLayers, TheCacheFollowsABeamSearch) {
  const Decoder decoder;
  const Tensor x = random_tensor<double>({2, 6}, 1), next = random_tensor<double>({2, 6}, 2);
  const Tensor memory = random_tensor<double>({3, 6}, 3);
  std::vector<double> twice = memory.values<double>();
  twice.insert(twice.end(), twice.begin(), twice.begin() + 18);
  const Offsets memory_offsets{0, 3, 6};
  auto caches = decoder.caches(Tensor::of<double>({6, 6}, twice));
  decoder.step(x, caches, {0, 1}, memory_offsets);
  const Tensor y = decoder.step(next, caches, {1, 0, 1, 1}, memory_offsets);
  for (int64_t r = 0; r < 2; ++r) {
    std::vector<double> rows = slice(x, 0, 1, 2).values<double>();
    const std::vector<double> last = slice(next, 0, r, r + 1).values<double>();
    rows.insert(rows.end(), last.begin(), last.end());
    const Tensor whole = decoder.whole(Tensor::of<double>({2, 6}, rows), memory, {0, 2}, {0, 3});
    expect_near(slice(y, 0, r, r + 1), slice(whole, 0, 1, 2).values<double>(), 1e-12);
  }
}

TEST(TransformerLayers, ACausalLayerDoesNotSeeTheFuture) {
  TransformerDecoderLayer decoder(kSmall);
  prepare(decoder);
  const Tensor memory = random_tensor<double>({1, 3, 6}, 2);
  std::vector<double> values = random_tensor<double>({1, 5, 6}, 1).values<double>();
  const auto output = [&] {
    return decoder(Tensor::of<double>({1, 5, 6}, values), memory, {.causal = true}, {})
        .values<double>();
  };
  const std::vector<double> before = output();
  values[18] += 1;  // of token 3
  const std::vector<double> after = output();
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(before[i] == after[i], i < 18) << i;
}

TEST(TransformerLayers, DropOutInTrainingOnly) {
  set_seed(1);  // others might drop what is 0 anyway
  const Tensor x = random_tensor<float>({1, 3, 6}, 1);
  for (double TransformerLayerConfig::*dropout :
       {&TransformerLayerConfig::dropout, &TransformerLayerConfig::attention_dropout,
        &TransformerLayerConfig::activation_dropout}) {
    TransformerLayerConfig config = kSmall;
    config.*dropout = 0.5;
    TransformerEncoderLayer encoder(config);
    TransformerDecoderLayer decoder(config);
    const auto encoded = [&] { return encoder(x, {}).values<float>(); };
    const auto decoded = [&] { return decoder(x, x, {}, {}).values<float>(); };
    EXPECT_NE(encoded(), encoded());
    EXPECT_NE(decoded(), decoded());
    encoder.evaluate();
    decoder.evaluate();
    const RandomState random = default_generator().state();
    EXPECT_EQ(encoded(), encoded());
    EXPECT_EQ(decoded(), decoded());
    EXPECT_EQ(default_generator().state(), random);
  }
}

// Only what is added is dropped: x itself goes on.
TEST(TransformerLayers, DropWhatIsAddedToTheResidual) {
  for (const bool pre_norm : {true, false}) {
    TransformerLayerConfig config = kSmall;
    config.pre_norm = pre_norm;
    config.dropout = 1;
    TransformerEncoderLayer encoder(config);
    TransformerDecoderLayer decoder(config);
    test::randomize(encoder, 1);
    test::randomize(decoder, 2);
    const Tensor x = random_tensor<float>({1, 3, 6}, 1),
                 memory = random_tensor<float>({1, 2, 6}, 2);
    Tensor encoded = x, decoded = x;
    if (!pre_norm) {
      encoded = encoder.feed_forward_norm(encoder.self_attention_norm(x));
      decoded =
          decoder.feed_forward_norm(decoder.cross_attention_norm(decoder.self_attention_norm(x)));
    }
    EXPECT_EQ(encoder(x, {}).values<float>(), encoded.values<float>());
    EXPECT_EQ(decoder(x, memory, {}, {}).values<float>(), decoded.values<float>());
  }
}

TEST(TransformerLayers, TakeEmptyBatchesAndRefuseWhatDoesNotFit) {
  const TransformerEncoderLayer encoder(kSmall);
  const TransformerDecoderLayer decoder(kSmall);
  const auto x = [](const Shape& shape) { return random_tensor<float>(shape, 1); };
  EXPECT_EQ(encoder(x({0, 3, 6}), {}).shape(), Shape({0, 3, 6}));
  EXPECT_EQ(encoder(x({2, 0, 6}), {}).shape(), Shape({2, 0, 6}));
  EXPECT_EQ(decoder(x({2, 3, 6}), x({2, 0, 6}), {.causal = true}, {}).shape(), Shape({2, 3, 6}));
  EXPECT_NE(error_of([&] { encoder(x({1, 3, 5}), {}); }), "");
  EXPECT_NE(error_of([&] { decoder(x({1, 3, 6}), x({1, 3, 5}), {}, {}); }), "");
  EXPECT_NE(error_of([&] { decoder(x({1, 3, 6}), x({2, 3, 6}), {}, {}); }), "");
  TransformerLayerConfig config = kSmall;
  config.heads = 4;
  EXPECT_EQ(error_of([&] { TransformerEncoderLayer layer(config); }),
            "multi-head attention: the width must be a multiple of the heads, got width 6 and 4 "
            "heads");
  config.heads = 2;
  config.dropout = -1;
  EXPECT_EQ(error_of([&] { TransformerDecoderLayer layer(config); }),
            "dropout: the probability must be 0 to 1, got -1");
}

}  // namespace
}  // namespace gs
