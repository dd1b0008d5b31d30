#include "framework/nn/transformer_layers.h"

#include "framework/ops/reshape.h"
#include "framework/ops/residual.h"

namespace gs::nn {
namespace {

MultiHeadAttention::Config attention_config(const TransformerLayerConfig& config) {
  MultiHeadAttention::Config result;
  result.heads = config.heads;
  result.dropout = config.attention_dropout;
  return result;
}

FeedForward::Config feed_forward_config(const TransformerLayerConfig& config) {
  return {config.activation, config.activation_dropout};
}

// The residual connection around one part of a layer.
template <typename Function>
Tensor residual(const Tensor& x, const LayerNorm& norm, const Dropout& dropout, bool pre_norm,
                const Function& function) {
  const double probability = dropout.probability;
  if (pre_norm) return gs::residual(x, function(norm(x)), probability, dropout.training());
  return residual_layer_norm(x, function(x), norm.weight, norm.bias, norm.epsilon, probability,
                             dropout.training());
}

// The decoder layer over any way to attend.
template <typename SelfAttend, typename MemoryAttend>
Tensor decode(const TransformerDecoderLayer& layer, Tensor x, const SelfAttend& self_attend,
              const MemoryAttend& memory_attend) {
  x = residual(x, *layer.self_attention_norm, *layer.dropout, layer.pre_norm, self_attend);
  x = residual(x, *layer.cross_attention_norm, *layer.dropout, layer.pre_norm, memory_attend);
  return residual(x, *layer.feed_forward_norm, *layer.dropout, layer.pre_norm, layer.feed_forward);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(const TransformerLayerConfig& config)
    : pre_norm(config.pre_norm),
      self_attention(*this, "self_attention", config.width, attention_config(config)),
      self_attention_norm(*this, "self_attention_norm", config.width),
      feed_forward(*this, "feed_forward", config.width, config.feed_forward_width,
                   feed_forward_config(config)),
      feed_forward_norm(*this, "feed_forward_norm", config.width),
      dropout(*this, "dropout", config.dropout) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const AttentionContext& context) const {
  const Tensor attended =
      residual(x, *self_attention_norm, *dropout, pre_norm,
               [&](const Tensor& h) { return self_attention(h, h, h, context); });
  return residual(attended, *feed_forward_norm, *dropout, pre_norm, feed_forward);
}

TransformerDecoderLayer::TransformerDecoderLayer(const TransformerLayerConfig& config)
    : pre_norm(config.pre_norm),
      self_attention(*this, "self_attention", config.width, attention_config(config)),
      self_attention_norm(*this, "self_attention_norm", config.width),
      cross_attention(*this, "cross_attention", config.width, attention_config(config)),
      cross_attention_norm(*this, "cross_attention_norm", config.width),
      feed_forward(*this, "feed_forward", config.width, config.feed_forward_width,
                   feed_forward_config(config)),
      feed_forward_norm(*this, "feed_forward_norm", config.width),
      dropout(*this, "dropout", config.dropout) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                           const AttentionContext& context,
                                           const AttentionContext& memory_context) const {
  return decode(
      *this, x, [&](const Tensor& h) { return self_attention(h, h, h, context); },
      [&](const Tensor& h) { return cross_attention(h, memory, memory, memory_context); });
}

Tensor TransformerDecoderLayer::step(const Tensor& x, DecoderLayerCache& cache,
                                     std::span<const int32_t> rows,
                                     const AttentionContext& memory_context) const {
  return decode(
      *this, x, [&](const Tensor& h) { return self_attention->extend(h, cache.self, rows); },
      [&](const Tensor& h) { return cross_attention->attend(h, cache.memory, memory_context); });
}

}  // namespace gs::nn
