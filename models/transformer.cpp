#include "models/transformer.h"

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/cast.h"
#include "framework/ops/linear.h"
#include "framework/ops/linear_cross_entropy.h"
#include "framework/ops/permute.h"
#include "models/placed_batch.h"

namespace gs {
namespace {

using nn::AttentionContext;

nn::TransformerLayerConfig layer_config(const TransformerConfig& config) {
  return {.width = config.width,
          .heads = config.heads,
          .feed_forward_width = config.feed_forward_width,
          .pre_norm = config.pre_norm,
          .activation = config.activation,
          .dropout = config.dropout,
          .attention_dropout = config.attention_dropout,
          .activation_dropout = config.activation_dropout};
}

const TransformerConfig& checked(const TransformerConfig& config) {
  check(config.source_vocabulary >= 1 && config.target_vocabulary >= 1,
        "transformer: vocabularies must not be empty, got {} and {}", config.source_vocabulary,
        config.target_vocabulary);
  check(config.width >= 1 && config.feed_forward_width >= 1 && config.maximum_length >= 1,
        "transformer: widths and the maximum length must be at least 1, got {}, {} and {}",
        config.width, config.feed_forward_width, config.maximum_length);
  check(config.encoder_layers >= 0 && config.decoder_layers >= 1,
        "transformer: needs a decoder layer, got {} encoder and {} decoder layers",
        config.encoder_layers, config.decoder_layers);
  check(!config.share_embeddings || config.source_vocabulary == config.target_vocabulary,
        "transformer: shared embeddings need one vocabulary, got sizes {} and {}",
        config.source_vocabulary, config.target_vocabulary);
  for (const double rate : {config.dropout, config.attention_dropout, config.activation_dropout,
                            config.embedding_dropout.value_or(0)}) {
    check(rate >= 0 && rate < 1, "transformer: dropout must be in [0, 1), got {}", rate);
  }
  return config;
}

void check_bfloat16(Device device) {
  check(device != Device::cpu(),
        "transformer: bfloat16 needs a CUDA device, got {}; move the model there first", device);
}

// The rows of a history (R, length) with one token more, which stands in the row itself.
std::vector<int32_t> extended(const std::vector<int32_t>& history, int64_t rows, int64_t length) {
  std::vector<int32_t> result;
  result.reserve(static_cast<size_t>(rows * (length + 1)));
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = history.begin() + row * length;
    result.insert(result.end(), first, first + length);
    result.push_back(static_cast<int32_t>(row));
  }
  return result;
}

// The norm after the last layer, which only the pre-norm form has.
std::unique_ptr<nn::Child<nn::LayerNorm>> final_norm(nn::Module& owner,
                                                     const TransformerConfig& config) {
  if (!config.pre_norm) return nullptr;
  return std::make_unique<nn::Child<nn::LayerNorm>>(owner, "norm", config.width);
}

}  // namespace

struct Transformer::Encoder : nn::Module {
  explicit Encoder(const TransformerConfig& config)
      : layers(*this, "layers", config.encoder_layers, layer_config(config)),
        norm(final_norm(*this, config)) {}

  Tensor operator()(Tensor x, const AttentionContext& context) const {
    for (int64_t i = 0; i < layers->size(); ++i) x = (*layers)[i](x, context);
    return norm ? (*norm)(x) : x;
  }

  nn::Child<nn::ChildList<nn::TransformerEncoderLayer>> layers;
  std::unique_ptr<nn::Child<nn::LayerNorm>> norm;
};

struct Transformer::Decoder : nn::Module {
  explicit Decoder(const TransformerConfig& config)
      : layers(*this, "layers", config.decoder_layers, layer_config(config)),
        norm(final_norm(*this, config)) {}

  // The last layer's attention to the memory is the one that memory_context asks for.
  Tensor operator()(Tensor x, const Tensor& memory, const AttentionContext& context,
                    const AttentionContext& memory_context) const {
    AttentionContext silent = memory_context;
    silent.weights = nullptr;
    for (int64_t i = 0; i < layers->size(); ++i) {
      x = (*layers)[i](x, memory, context, i + 1 == layers->size() ? memory_context : silent);
    }
    return norm ? (*norm)(x) : x;
  }

  Tensor step(Tensor x, DecoderState& state) const {
    const AttentionContext memory_context{.query_offsets = state.row_offsets,
                                          .key_offsets = state.memory_offsets};
    for (int64_t i = 0; i < layers->size(); ++i) {
      x = (*layers)[i].step(x, state.layers[static_cast<size_t>(i)], state.history, memory_context);
    }
    return norm ? (*norm)(x) : x;
  }

  nn::Child<nn::ChildList<nn::TransformerDecoderLayer>> layers;
  std::unique_ptr<nn::Child<nn::LayerNorm>> norm;
};

Transformer::Transformer(const TransformerConfig& given)
    : config(checked(given)),
      source_embedding_(*this, "source_embedding", config.source_vocabulary, config.width),
      target_embedding_(*this, "target_embedding", config.target_vocabulary, config.width),
      sinusoidal_positions_(*this, "sinusoidal_positions",
                            config.learned_positions ? 0 : config.maximum_length, config.width),
      embedding_dropout_(*this, "embedding_dropout",
                         config.embedding_dropout.value_or(config.dropout)),
      encoder_(std::make_unique<nn::Child<Encoder>>(*this, "encoder", config)),
      decoder_(std::make_unique<nn::Child<Decoder>>(*this, "decoder", config)) {
  if (config.learned_positions) {
    learned_positions_ = std::make_unique<nn::Child<nn::LearnedPositions>>(
        *this, "positions", config.maximum_length, config.width);
  }
  if (!config.tie_output || config.output_bias) {
    output_ = std::make_unique<nn::Child<nn::Linear>>(*this, "output", config.width,
                                                      config.target_vocabulary,
                                                      nn::Linear::Config{config.output_bias});
  }
  if (config.share_embeddings) target_embedding_->weight.tie(source_embedding_->weight);
  if (config.tie_output && output_) (*output_)->weight.tie(target_embedding_->weight);
}

Transformer::~Transformer() = default;

Tensor Transformer::indices_of(std::span<const int32_t> tokens) const {
  const Array array =
      Array::of<int32_t>({static_cast<int64_t>(tokens.size())}, {tokens.begin(), tokens.end()});
  return Tensor(device() == Device::cpu() ? array : array.to(device()));
}

Tensor Transformer::embed(const nn::Embedding& table, const Tensor& tokens,
                          const Tensor& positions) const {
  Tensor x = table(tokens);
  if (config.scale_embeddings) x = x * std::sqrt(static_cast<double>(config.width));
  x = x + (learned_positions_ ? (*learned_positions_)(positions)
                              : sinusoidal_positions_(positions, x.dtype()));
  x = embedding_dropout_(x);
  if (!uses_bfloat16_) return x;
  check_bfloat16(device());  // the model may have been moved
  return cast(x, kBFloat16);
}

void Transformer::use_bfloat16(bool use) {
  if (use) check_bfloat16(device());
  uses_bfloat16_ = use;
}

Tensor Transformer::logits(const Tensor& x) const {
  return output_ ? (*output_)(x) : linear(x, target_embedding_->weight);
}

EncodedSource Transformer::encode(const Sequences& source) const {
  const Tensor x = embed(*source_embedding_, indices_of(source.tokens),
                         nn::packed_positions(source.offsets, device()));
  const AttentionContext context{.query_offsets = source.offsets, .key_offsets = source.offsets};
  return {(*encoder_)(x, context), source.offsets};
}

Tensor Transformer::decoded(const Sequences& target_inputs, const EncodedSource& source,
                            Tensor* attention) const {
  check(target_inputs.offsets.size() == source.offsets.size(),
        "transformer: needs a target for each source, got {} and {}", target_inputs.count(),
        source.offsets.size() - 1);
  const Tensor x = embed(*target_embedding_, indices_of(target_inputs.tokens),
                         nn::packed_positions(target_inputs.offsets, device()));
  const AttentionContext context{
      .query_offsets = target_inputs.offsets, .key_offsets = target_inputs.offsets, .causal = true};
  const AttentionContext memory_context{
      .query_offsets = target_inputs.offsets, .key_offsets = source.offsets, .weights = attention};
  return (*decoder_)(x, source.memory, context, memory_context);
}

Tensor Transformer::decode(const Sequences& target_inputs, const EncodedSource& source,
                           Tensor* attention) const {
  return logits(decoded(target_inputs, source, attention));
}

Loss Transformer::loss(const Sequences& target_inputs, const EncodedSource& source,
                       const Tensor& labels, const CrossEntropyOptions& options) const {
  return loss_of(decoded(target_inputs, source), labels, options);
}

Loss Transformer::loss(const PlacedBatch& batch, const CrossEntropyOptions& options) const {
  const Tensor memory = (*encoder_)(embed(*source_embedding_, batch.source, batch.source_positions),
                                    AttentionContext{.placed = &batch.encoder});
  const Tensor x =
      (*decoder_)(embed(*target_embedding_, batch.target_inputs, batch.target_positions), memory,
                  AttentionContext{.causal = true, .placed = &batch.decoder},
                  AttentionContext{.placed = &batch.to_encoder});
  return loss_of(x, batch.labels, options);
}

Loss Transformer::loss_of(const Tensor& x, const Tensor& labels,
                          const CrossEntropyOptions& options) const {
  return output_ ? linear_cross_entropy(x, (*output_)->weight, (*output_)->bias, labels, options)
                 : linear_cross_entropy(x, target_embedding_->weight, Tensor(), labels, options);
}

DecoderState Transformer::begin(const EncodedSource& source) const {
  DecoderState state;
  state.memory_offsets = source.offsets;
  for (size_t b = 0; b < source.offsets.size(); ++b)
    state.row_offsets.push_back(static_cast<int32_t>(b));
  const auto& layers = *(*decoder_)->layers;
  for (int64_t i = 0; i < layers.size(); ++i) {
    state.layers.push_back(
        {.self = {}, .memory = layers[i].cross_attention->project(source.memory, source.memory)});
  }
  return state;
}

Tensor Transformer::advance(std::span<const int32_t> tokens, DecoderState& state) const {
  check(static_cast<int64_t>(tokens.size()) == state.row_offsets.back(),
        "transformer: needs a token for each of {} rows, got {}", state.row_offsets.back(),
        tokens.size());
  const std::vector<int32_t> positions(tokens.size(), static_cast<int32_t>(state.position));
  const Tensor x = embed(*target_embedding_, indices_of(tokens), indices_of(positions));
  state.history = extended(state.history, state.row_offsets.back(), state.position);
  ++state.position;
  return (*decoder_)->step(x, state);
}

Tensor Transformer::step(std::span<const int32_t> tokens, DecoderState& state) const {
  return logits(advance(tokens, state));
}

TopLogSoftmax Transformer::step(std::span<const int32_t> tokens, DecoderState& state,
                                int64_t count) const {
  const Tensor x = advance(tokens, state);
  if (!state.output_weight.defined()) {
    const Tensor& weight = output_ ? (*output_)->weight : target_embedding_->weight;
    state.output_weight = cast(permute(weight, {1, 0}), x.dtype());
    if (output_ && (*output_)->bias->defined())
      state.output_bias = cast((*output_)->bias, x.dtype());
  }
  return linear_top_log_softmax(x, state.output_weight, state.output_bias, count);
}

void Transformer::select(DecoderState& state, const std::vector<int32_t>& rows,
                         std::vector<int32_t> row_offsets) {
  std::vector<int32_t> history;
  history.reserve(rows.size() * static_cast<size_t>(state.position));
  for (const int32_t row : rows) {
    const auto first = state.history.begin() + row * state.position;
    history.insert(history.end(), first, first + state.position);
  }
  state.history = std::move(history);
  state.row_offsets = std::move(row_offsets);
}

}  // namespace gs
