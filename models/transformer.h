#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "framework/nn/embedding.h"
#include "framework/nn/positions.h"
#include "framework/nn/transformer_layers.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/top_log_softmax.h"
#include "framework/text/sequences.h"

namespace gs {

struct PlacedBatch;

struct TransformerConfig {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t width = 64;                // C
  int64_t heads = 4;                 // H
  int64_t feed_forward_width = 256;  // F
  int64_t encoder_layers = 2, decoder_layers = 2;
  int64_t maximum_length = 256;  // of a sequence, marks included
  bool pre_norm = true;          // with one more norm after the last layer of each stack
  nn::Activation activation = nn::Activation::kRelu;
  bool share_embeddings = false;   // one table for both languages, which need one vocabulary then
  bool tie_output = true;          // the output projection is the target's table
  bool output_bias = false;        // of the output projection
  bool scale_embeddings = true;    // by sqrt(C)
  bool learned_positions = false;  // else sinusoidal
  double dropout = 0;              // of what is added to residuals
  double attention_dropout = 0;    // of attention weights
  double activation_dropout = 0;   // inside the feed-forward layers
  std::optional<double> embedding_dropout = {};  // of embeddings with positions; none: as `dropout`
};

// What the encoder made of a batch of source sentences: packed rows and where each sentence begins.
struct EncodedSource {
  Tensor memory;                 // (N, C)
  std::vector<int32_t> offsets;  // (B + 1)
};

// Decoding token by token: one row for each hypothesis, those of one sentence side by side.
struct DecoderState {
  std::vector<nn::DecoderLayerCache> layers;
  std::vector<int32_t> history;         // (R, position): the row of each token taken so far
  std::vector<int32_t> row_offsets;     // (B + 1): the rows of each sentence
  std::vector<int32_t> memory_offsets;  // (B + 1)
  int64_t position = 0;                 // tokens taken so far
  Tensor output_weight, output_bias;    // in the type of activations: (C, V), transposed, and (V)
};

// The encoder-decoder Transformer of Vaswani et al., "Attention is all you need", 2017. Sentences
// are packed, without padding: no result depends on which others share the batch.
class Transformer : public nn::Module {
 public:
  explicit Transformer(const TransformerConfig& config);
  ~Transformer() override;

  EncodedSource encode(const Sequences& source) const;
  // Logits of the token that follows each target input: (N, V), packed like the inputs. `attention`
  // receives the last layer's attention to the source, a block (H, T, S) for each sentence.
  Tensor decode(const Sequences& target_inputs, const EncodedSource& source,
                Tensor* attention = nullptr) const;
  Tensor operator()(const Sequences& source, const Sequences& target_inputs) const {
    return decode(target_inputs, encode(source));
  }
  // The cross entropy of those logits with the tokens that do follow, `labels` (N): for training
  // and scores, without ever holding all logits in memory.
  Loss loss(const Sequences& target_inputs, const EncodedSource& source, const Tensor& labels,
            const CrossEntropyOptions& options = {}) const;

  // The same for a batch on the device.
  Loss loss(const PlacedBatch& batch, const CrossEntropyOptions& options = {}) const;

  // A state with one hypothesis for each sentence.
  DecoderState begin(const EncodedSource& source) const;
  // Takes one more token for each row and gives the logits of what follows, (R, V): those that
  // decode gives at the last position. There is no gradient: call it under NoGrad.
  Tensor step(std::span<const int32_t> tokens, DecoderState& state) const;
  // The same, but only the log-probabilities of the `count` most probable tokens of each row.
  TopLogSoftmax step(std::span<const int32_t> tokens, DecoderState& state, int64_t count) const;
  // Goes on with the given rows, which may be repeated or left out; row_offsets are the new ones,
  // and sentences without rows stay empty.
  static void select(DecoderState& state, const std::vector<int32_t>& rows,
                     std::vector<int32_t> row_offsets);

  // Computes in bfloat16 from the embeddings on, on a CUDA device, or again in the type of the
  // parameters. Those stay as they are, and so do losses and gradients of parameters.
  void use_bfloat16(bool use);
  bool uses_bfloat16() const { return uses_bfloat16_; }

  // Where the parameters are, and all that is computed. Tokens go there from the host; labels have
  // to be there.
  Device device() const { return source_embedding_->weight.tensor().device(); }

  const TransformerConfig config;

 private:
  struct Encoder;
  struct Decoder;

  // int32 (N), on the device.
  Tensor indices_of(std::span<const int32_t> tokens) const;
  Tensor embed(const nn::Embedding& table, const Tensor& tokens, const Tensor& positions) const;
  // What the decoder makes of the target inputs, (N, C).
  Tensor decoded(const Sequences& target_inputs, const EncodedSource& source,
                 Tensor* attention = nullptr) const;
  Loss loss_of(const Tensor& x, const Tensor& labels, const CrossEntropyOptions& options) const;
  Tensor logits(const Tensor& x) const;                                        // (N, C) -> (N, V)
  Tensor advance(std::span<const int32_t> tokens, DecoderState& state) const;  // -> (R, C)

  bool uses_bfloat16_ = false;
  nn::Child<nn::Embedding> source_embedding_, target_embedding_;
  nn::Child<nn::SinusoidalPositions> sinusoidal_positions_;
  std::unique_ptr<nn::Child<nn::LearnedPositions>> learned_positions_;
  nn::Child<nn::Dropout> embedding_dropout_;
  std::unique_ptr<nn::Child<Encoder>> encoder_;
  std::unique_ptr<nn::Child<Decoder>> decoder_;
  std::unique_ptr<nn::Child<nn::Linear>> output_;  // none where the output is tied without a bias
};

}  // namespace gs
