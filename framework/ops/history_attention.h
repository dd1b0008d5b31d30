#pragma once

#include <span>

#include "framework/tensor/tensor.h"

namespace gs {

// Attention of one query a row to the tokens that it has behind it, for decoding token by token.
// The keys (R_t, H * D) and values (R_t, H * Dv) of each of T tokens stay as they were made: row r
// of the query (R, H * D) sees row rows[r * T + t] of token t, so that a search which repeats and
// drops hypotheses moves no keys. -> (R, H * Dv): softmax(query key^T / sqrt(D)) value for each
// head. At least one token is needed. It has no gradient: inputs that need one are refused.
Tensor history_attention(const Tensor& query, std::span<const Tensor> keys,
                         std::span<const Tensor> values, std::span<const int32_t> rows,
                         int64_t heads);

}  // namespace gs
