#include "framework/ops/history_attention.h"

#include <vector>

#include "framework/backend/history_attention.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

constexpr const char* kName = "history_attention";

void check_token(size_t t, const Tensor& query, const Tensor& key, const Tensor& value,
                 const Tensor& first_value) {
  check_operands(kName, query, key);
  check_operands(kName, query, value);
  refuse_gradient(kName, {query, key, value});
  check(key.rank() == 2 && value.rank() == 2 && key.size(1) == query.size(1) &&
            value.size(1) == first_value.size(-1) && key.size(0) == value.size(0),
        "{}: keys must be (rows, {}) and values (rows, {}), got {} and {} for token {}", kName,
        query.size(1), first_value.size(-1), key.shape(), value.shape(), t);
}

}  // namespace

Tensor history_attention(const Tensor& query, std::span<const Tensor> keys,
                         std::span<const Tensor> values, std::span<const int32_t> rows,
                         int64_t heads) {
  const OperationTimer timer(kName);
  check_operand(kName, query);
  check(query.rank() == 2 && is_computable(query),
        "{}: the query must be floating and (R, C), got {} {}", kName, query.shape(),
        query.dtype());
  check(!keys.empty() && keys.size() == values.size(),
        "{}: needs keys and values of at least one token, got {} and {}", kName, keys.size(),
        values.size());
  const size_t tokens = keys.size();
  std::vector<Array> key_arrays, value_arrays;
  for (size_t t = 0; t < tokens; ++t) {
    check_token(t, query, keys[t], values[t], values[0]);
    key_arrays.push_back(keys[t].value());
    value_arrays.push_back(values[t].value());
  }
  check(heads >= 1 && query.size(1) % heads == 0 && values[0].size(1) % heads == 0,
        "{}: heads must divide the widths, got {} heads for widths {} and {}", kName, heads,
        query.size(1), values[0].size(1));
  check(rows.size() == static_cast<size_t>(query.size(0)) * tokens,
        "{}: needs a row of each of {} tokens for each of {} queries, got {}", kName, tokens,
        query.size(0), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    check(rows[i] >= 0 && rows[i] < keys[i % tokens].size(0),
          "{}: token {} has {} rows, got row {} for query {}", kName, i % tokens,
          keys[i % tokens].size(0), rows[i], i / tokens);
  }
  Array y = Array::empty({query.size(0), values[0].size(1)}, query.dtype(), query.device());
  on_device(query.device(), [&](auto on) {
    backend::history_attention(on, y, query.value(), {key_arrays, value_arrays, rows, heads});
  });
  return Tensor(y);
}

}  // namespace gs
