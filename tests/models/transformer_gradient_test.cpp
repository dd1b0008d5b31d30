// Gradients of every variant of the Transformer.
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/nn/gradcheck.h"
#include "framework/ops/cross_entropy.h"
#include "tests/models/small_models.h"

namespace gs {
namespace {

using test::sequences;
using test::small_config;
using test::small_transformer;

const std::vector<std::vector<int32_t>> kSources{
    {5, 6, 7, 2}, {8, 4, 9, 12, 3, 10, 2}, {2}, {11, 4, 2}};
const std::vector<std::vector<int32_t>> kTargets{{1, 5, 6}, {1, 7}, {1, 4, 10, 9, 8, 3}, {1}};

Tensor labels_of(const std::vector<std::vector<int32_t>>& targets) {
  const Sequences packed = sequences(targets);
  std::vector<int32_t> labels(packed.tokens.size());
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(3 + (5 * i) % 8);
  return Tensor::of<int32_t>({static_cast<int64_t>(labels.size())}, labels);
}

TransformerConfig variant(int number) {
  TransformerConfig config = small_config();
  config.pre_norm = (number & 1) == 0;
  config.activation = (number & 2) == 0 ? nn::Activation::kRelu : nn::Activation::kGelu;
  config.share_embeddings = (number & 4) != 0;
  if (config.share_embeddings) config.target_vocabulary = config.source_vocabulary;
  config.tie_output = (number & 8) == 0;
  config.output_bias = (number & 16) != 0;
  config.learned_positions = (number & 32) != 0;
  return config;
}

// A frozen part would train on unnoticed.
TEST(Transformer, AGradientReachesEveryParameterOfEveryVariant) {
  for (int number = 0; number < 64; ++number) {
    const auto model = small_transformer(8, variant(number));
    model->train();
    cross_entropy((*model)(sequences(kSources), sequences(kTargets)), labels_of(kTargets))
        .mean()
        .backward();
    for (const auto& named : model->parameters()) {
      // Softmax does not see what is added to all scores of a query.
      if (named.path.ends_with("attention/key/bias")) continue;
      const Tensor gradient = named.parameter->tensor().gradient();
      ASSERT_TRUE(gradient.defined()) << named.path << " of variant " << number;
      const std::vector<float> values = gradient.values<float>();
      EXPECT_TRUE(std::any_of(values.begin(), values.end(), [](float v) { return v != 0; }))
          << named.path << " of variant " << number;
    }
  }
}

TEST(Transformer, GradientsEqualDifferences) {
  for (const int number : {0, 1 + 2, 4 + 16, 2 + 8 + 32}) {
    TransformerConfig config = variant(number);
    config.encoder_layers = config.decoder_layers = 1;
    config.dropout = config.attention_dropout = config.activation_dropout = 0.1;
    const auto model = small_transformer(13, config);
    model->train();
    const GradcheckResult result =
        nn::gradcheck(*model,
                      [&](const std::vector<Tensor>&) {
                        return (*model)(sequences(kSources), sequences(kTargets));
                      },
                      {}, {.samples_per_input = 8});
    EXPECT_TRUE(result.passed) << "variant " << number << ": " << result.message;
    EXPECT_GT(result.checked, 100);
  }
}

}  // namespace
}  // namespace gs
