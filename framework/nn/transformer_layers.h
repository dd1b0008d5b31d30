#pragma once

#include "framework/nn/dropout.h"
#include "framework/nn/feed_forward.h"
#include "framework/nn/layer_norm.h"
#include "framework/nn/multi_head_attention.h"

namespace gs::nn {

struct TransformerLayerConfig {
  int64_t width = 0;               // C
  int64_t heads = 1;               // H
  int64_t feed_forward_width = 0;  // F
  bool pre_norm = true;            // x + f(norm(x)); else norm(x + f(x)), as published
  Activation activation = Activation::kRelu;
  double dropout = 0;             // of what is added to the residual
  double attention_dropout = 0;   // on attention weights
  double activation_dropout = 0;  // inside the feed-forward layers
};

// Self-attention and feed-forward layers, each with a residual connection around it.
struct TransformerEncoderLayer : Module {
  explicit TransformerEncoderLayer(const TransformerLayerConfig& config);
  Tensor operator()(const Tensor& x,
                    const AttentionContext& context) const;  // (..., C) -> (..., C)

  const bool pre_norm;
  Child<MultiHeadAttention> self_attention;
  Child<LayerNorm> self_attention_norm;
  Child<FeedForward> feed_forward;
  Child<LayerNorm> feed_forward_norm;
  Child<Dropout> dropout;
};

// What one decoder layer remembers while it decodes token by token.
struct DecoderLayerCache {
  TokenHistory self;
  KeyValues memory;  // of the encoder's output
};

// Causal self-attention, attention to the encoder's output, and feed-forward layers.
struct TransformerDecoderLayer : Module {
  explicit TransformerDecoderLayer(const TransformerLayerConfig& config);
  // x (..., T, C), memory (..., S, C) -> (..., T, C). `context` must be causal for a decoder that
  // is to generate.
  Tensor operator()(const Tensor& x, const Tensor& memory, const AttentionContext& context,
                    const AttentionContext& memory_context) const;
  // One more token for each of R hypotheses, x (R, C) -> (R, C): the same as the last position of a
  // whole pass. `cache.memory` must be projected before; `cache.self` grows. `rows` (R, tokens so
  // far) tells where the tokens of each hypothesis stand: see MultiHeadAttention::extend.
  Tensor step(const Tensor& x, DecoderLayerCache& cache, std::span<const int32_t> rows,
              const AttentionContext& memory_context) const;

  const bool pre_norm;
  Child<MultiHeadAttention> self_attention;
  Child<LayerNorm> self_attention_norm;
  Child<MultiHeadAttention> cross_attention;
  Child<LayerNorm> cross_attention_norm;
  Child<FeedForward> feed_forward;
  Child<LayerNorm> feed_forward_norm;
  Child<Dropout> dropout;
};

}  // namespace gs::nn
