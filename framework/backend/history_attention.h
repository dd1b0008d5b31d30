#pragma once

#include <span>

#include "framework/backend/array.h"

namespace gs::backend {

// Attention of one query a row to tokens whose keys and values stand in an array for each token.
// Row r sees row rows[r * T + t] of token t. Keys are (rows of the token, heads * width), values
// (rows of the token, heads * value width). Scores are query * key / sqrt(width).
struct History {
  std::span<const Array> keys, values;  // (T)
  std::span<const int32_t> rows;        // (R, T)
  int64_t heads = 1;
};
void history_attention(Cpu, Array& output, const Array& query, const History& history);
void history_attention(Cuda, Array& output, const Array& query, const History& history);

}  // namespace gs::backend
