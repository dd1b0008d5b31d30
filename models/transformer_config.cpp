#include "models/transformer_config.h"

#include <fmt/format.h>

#include <charconv>

namespace gs {
namespace {

constexpr const char* kEmbeddingDropout = "embedding_dropout";  // files of before do not hold it

// Calls visit(name, field) for every field, so that writing and reading cannot differ.
template <typename Config, typename Visit>
void visit_fields(Config& config, Visit&& visit) {
  visit("source_vocabulary", config.source_vocabulary);
  visit("target_vocabulary", config.target_vocabulary);
  visit("width", config.width);
  visit("heads", config.heads);
  visit("feed_forward_width", config.feed_forward_width);
  visit("encoder_layers", config.encoder_layers);
  visit("decoder_layers", config.decoder_layers);
  visit("maximum_length", config.maximum_length);
  visit("pre_norm", config.pre_norm);
  visit("activation", config.activation);
  visit("share_embeddings", config.share_embeddings);
  visit("tie_output", config.tie_output);
  visit("output_bias", config.output_bias);
  visit("scale_embeddings", config.scale_embeddings);
  visit("learned_positions", config.learned_positions);
  visit("dropout", config.dropout);
  visit("attention_dropout", config.attention_dropout);
  visit("activation_dropout", config.activation_dropout);
}

std::string to_text(bool value) { return value ? "true" : "false"; }
std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(double value) { return fmt::format("{}", value); }  // shortest that reads back
std::string to_text(nn::Activation value) {
  return value == nn::Activation::kRelu ? "relu" : "gelu";
}

void parse(const std::string& text, bool& value) {
  check(text == "true" || text == "false", "needs true or false, got '{}'", text);
  value = text == "true";
}

template <typename Number>
void parse(const std::string& text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  check(error == std::errc() && last == end, "needs a number, got '{}'", text);
}

void parse(const std::string& text, nn::Activation& value) { value = nn::parse_activation(text); }

template <typename T>
void read(const std::string& name, const std::string& text, T& value) {
  try {
    parse(text, value);
  } catch (const Error& error) {
    fail("load: the model's {} {}", name, error.what());
  }
}

}  // namespace

std::map<std::string, std::string> config_to_text(const TransformerConfig& config) {
  std::map<std::string, std::string> text;
  visit_fields(config, [&](const char* name, const auto& value) { text[name] = to_text(value); });
  text[kEmbeddingDropout] = to_text(config.embedding_dropout.value_or(config.dropout));
  return text;
}

TransformerConfig config_from_text(const std::map<std::string, std::string>& text) {
  TransformerConfig config;
  visit_fields(config, [&](const char* name, auto& value) {
    const auto found = text.find(name);
    check(found != text.end(), "load: the model's {} is missing in the checkpoint", name);
    read(name, found->second, value);
  });
  const auto found = text.find(kEmbeddingDropout);
  if (found != text.end())
    read(kEmbeddingDropout, found->second, config.embedding_dropout.emplace());
  return config;
}

}  // namespace gs
