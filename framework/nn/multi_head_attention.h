#pragma once

#include <optional>
#include <span>

#include "framework/nn/linear.h"
#include "framework/ops/attention.h"

namespace gs::nn {

// Which rows are sequences of one batch, and what may attend to what. With offsets the rows of all
// sequences stand one after another, (N, C), and nothing is padded; without, batches are (B, T, C).
struct AttentionContext {
  std::span<const int32_t> query_offsets = {};  // (B + 1)
  std::span<const int32_t> key_offsets = {};    // (B + 1)
  bool causal = false;
  Tensor mask = {};  // bool, true = may attend; broadcasts to (B, H, T, S)
  // In place of the offsets, where only the device knows which rows are sequences.
  const PlacedSequences* placed = nullptr;
  std::vector<int64_t> key_lengths = {};  // of dense batches: keys that count, from the first on
  Tensor* weights = nullptr;              // where to put the weights (B, H, T, S), if wanted
};

// Projected keys and values, (..., S, C) each: computed once and attended to many times.
struct KeyValues {
  Tensor keys, values;
};

// Keys and values of rows that grow token by token, as decoding makes them: those of each token,
// (rows of that time, C).
struct TokenHistory {
  std::vector<Tensor> keys, values;
};

// Attention with `heads` of width C / heads between linear projections.
// Vaswani et al., "Attention is all you need", 2017, section 3.2.
struct MultiHeadAttention : Module {
  struct Config {
    int64_t heads = 1;
    bool input_bias = true;  // of query, key and value
    bool output_bias = true;
    std::optional<int64_t> key_width = std::nullopt;    // of the keys given; the model's by default
    std::optional<int64_t> value_width = std::nullopt;  // of the values given
    double dropout = 0;                                 // on the weights
  };

  // Heads that do not divide the width are refused.
  MultiHeadAttention(int64_t width, Config config);

  // query (B, T, C), key (B, S, Ck), value (B, S, Cv) -> (B, T, C); with offsets (N, C) and so on.
  Tensor operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                    const AttentionContext& context) const;
  // The two halves of it.
  KeyValues project(const Tensor& key_input, const Tensor& value_input) const;
  Tensor attend(const Tensor& query_input, const KeyValues& memory,
                const AttentionContext& context) const;
  // One more token a row, x (R, C) -> (R, C): puts its keys and values behind the T - 1 tokens of
  // `history`. Row r sees row rows[r * T + t] of token t; see history_attention.
  Tensor extend(const Tensor& x, TokenHistory& history, std::span<const int32_t> rows) const;

  const Config config;
  Child<Linear> query, key, value, output;
};

}  // namespace gs::nn
