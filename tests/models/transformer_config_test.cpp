#include "models/transformer_config.h"

#include <gtest/gtest.h>

#include "tests/models/small_models.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::sequences;
using test::small_config;
using test::small_transformer;

TransformerConfig unlike_the_default() {
  TransformerConfig config;
  config.source_vocabulary = 101;
  config.target_vocabulary = 103;
  config.width = 48;
  config.heads = 6;
  config.feed_forward_width = 99;
  config.encoder_layers = 0;
  config.decoder_layers = 5;
  config.maximum_length = 77;
  config.pre_norm = false;
  config.activation = nn::Activation::kGelu;
  config.share_embeddings = true;
  config.tie_output = false;
  config.output_bias = true;
  config.scale_embeddings = false;
  config.learned_positions = true;
  config.dropout = 0.1;
  config.attention_dropout = 1.0 / 3;
  config.activation_dropout = 1e-20;
  config.embedding_dropout = 0.25;
  return config;
}

const std::map<std::string, std::string> kText{{"source_vocabulary", "101"},
                                               {"target_vocabulary", "103"},
                                               {"width", "48"},
                                               {"heads", "6"},
                                               {"feed_forward_width", "99"},
                                               {"encoder_layers", "0"},
                                               {"decoder_layers", "5"},
                                               {"maximum_length", "77"},
                                               {"pre_norm", "false"},
                                               {"activation", "gelu"},
                                               {"share_embeddings", "true"},
                                               {"tie_output", "false"},
                                               {"output_bias", "true"},
                                               {"scale_embeddings", "false"},
                                               {"learned_positions", "true"},
                                               {"dropout", "0.1"},
                                               {"attention_dropout", "0.3333333333333333"},
                                               {"activation_dropout", "1e-20"},
                                               {"embedding_dropout", "0.25"}};

TEST(TransformerConfig, IsPlainText) { EXPECT_EQ(config_to_text(unlike_the_default()), kText); }

TEST(TransformerConfig, ComesBackToTheLastBit) {
  const TransformerConfig config = config_from_text(kText);
  EXPECT_EQ(config.source_vocabulary, 101);
  EXPECT_EQ(config.target_vocabulary, 103);
  EXPECT_EQ(config.width, 48);
  EXPECT_EQ(config.heads, 6);
  EXPECT_EQ(config.feed_forward_width, 99);
  EXPECT_EQ(config.encoder_layers, 0);
  EXPECT_EQ(config.decoder_layers, 5);
  EXPECT_EQ(config.maximum_length, 77);
  EXPECT_FALSE(config.pre_norm);
  EXPECT_EQ(config.activation, nn::Activation::kGelu);
  EXPECT_TRUE(config.share_embeddings);
  EXPECT_FALSE(config.tie_output);
  EXPECT_TRUE(config.output_bias);
  EXPECT_FALSE(config.scale_embeddings);
  EXPECT_TRUE(config.learned_positions);
  EXPECT_EQ(config.dropout, 0.1);
  EXPECT_EQ(config.attention_dropout, 1.0 / 3);
  EXPECT_EQ(config.activation_dropout, 1e-20);
  EXPECT_EQ(config.embedding_dropout, 0.25);
  EXPECT_EQ(config_to_text(config_from_text(config_to_text(TransformerConfig()))),
            config_to_text(TransformerConfig()));
}

// Embeddings once had no dropout of their own, and files of then must still load.
TEST(TransformerConfig, EmbeddingsDropOutLikeResidualsByDefault) {
  std::map<std::string, std::string> text = kText;
  text.erase("embedding_dropout");
  EXPECT_FALSE(config_from_text(text).embedding_dropout.has_value());
  EXPECT_EQ(config_to_text(config_from_text(text)).at("embedding_dropout"), "0.1");
  text["embedding_dropout"] = "0";
  EXPECT_EQ(config_to_text(config_from_text(text)).at("embedding_dropout"), "0");
}

TEST(TransformerConfig, NamesWhatIsMissingOrWrong) {
  for (const auto& [name, value] : kText) {
    std::map<std::string, std::string> text = kText;
    text.erase(name);
    if (name != "embedding_dropout") {
      EXPECT_EQ(error_of([&] { config_from_text(text); }),
                "load: the model's " + name + " is missing in the checkpoint");
    }
    text[name] = "seven";
    EXPECT_NE(error_of([&] { config_from_text(text); }).find("load: the model's " + name),
              std::string::npos);
  }
  const auto error_with = [](const std::string& name, const std::string& value) {
    std::map<std::string, std::string> text = kText;
    text[name] = value;
    return error_of([&] { config_from_text(text); });
  };
  EXPECT_EQ(error_with("width", "48.5"), "load: the model's width needs a number, got '48.5'");
  EXPECT_EQ(error_with("width", ""), "load: the model's width needs a number, got ''");
  EXPECT_EQ(error_with("width", "99999999999999999999"),
            "load: the model's width needs a number, got '99999999999999999999'");
  EXPECT_EQ(error_with("pre_norm", "1"), "load: the model's pre_norm needs true or false, got '1'");
}

// Without encoder layers the memory shows the dropout of embeddings alone.
TEST(TransformerConfig, EmbeddingsHaveADropoutOfTheirOwn) {
  const auto drops_out = [](double dropout, std::optional<double> embedding_dropout) {
    TransformerConfig config = small_config();
    config.encoder_layers = 0;
    config.dropout = dropout;
    config.embedding_dropout = embedding_dropout;
    const auto model = small_transformer(1, config);
    const Sequences source = sequences({{5, 6, 7}});
    const std::vector<float> expected = model->encode(source).memory.values<float>();
    model->train();
    return model->encode(source).memory.values<float>() != expected;
  };
  EXPECT_FALSE(drops_out(0, {}));
  EXPECT_TRUE(drops_out(0.5, {}));
  EXPECT_FALSE(drops_out(0.5, 0));
  EXPECT_TRUE(drops_out(0, 0.5));
}

}  // namespace
}  // namespace gs
