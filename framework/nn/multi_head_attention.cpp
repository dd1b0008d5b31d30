#include "framework/nn/multi_head_attention.h"

#include "framework/ops/history_attention.h"

namespace gs::nn {
namespace {

// Before anything divides by the number of heads.
int64_t checked_width(int64_t width, int64_t heads) {
  check(
      heads >= 1 && width >= 1 && width % heads == 0,
      "multi-head attention: the width must be a multiple of the heads, got width {} and {} heads",
      width, heads);
  return width;
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t width, Config config)
    : config(config),
      query(*this, "query", checked_width(width, config.heads), width,
            Linear::Config{config.input_bias}),
      key(*this, "key", config.key_width.value_or(width), width, Linear::Config{config.input_bias}),
      value(*this, "value", config.value_width.value_or(width), width,
            Linear::Config{config.input_bias}),
      output(*this, "output", width, width, Linear::Config{config.output_bias}) {}

KeyValues MultiHeadAttention::project(const Tensor& key_input, const Tensor& value_input) const {
  return {key(key_input), value(value_input)};
}

Tensor MultiHeadAttention::attend(const Tensor& query_input, const KeyValues& memory,
                                  const AttentionContext& context) const {
  check(context.query_offsets.empty() == context.key_offsets.empty(),
        "multi-head attention: offsets are for queries and keys alike, got {} and {}; give both or "
        "none",
        context.query_offsets.size(), context.key_offsets.size());
  AttentionOptions options;
  options.heads = config.heads;
  options.causal = context.causal;
  options.mask = context.mask;
  options.key_lengths = context.key_lengths;
  options.dropout = config.dropout;
  options.training = training();
  options.return_weights = context.weights != nullptr;
  const Tensor projected = query(query_input);
  const Attention attention =
      context.placed != nullptr
          ? packed_attention(projected, memory.keys, memory.values, *context.placed, options)
      : context.query_offsets.empty()
          ? scaled_dot_product_attention(projected, memory.keys, memory.values, options)
          : packed_attention(projected, context.query_offsets, memory.keys, memory.values,
                             context.key_offsets, options);
  if (context.weights != nullptr) *context.weights = attention.weights;
  return output(attention.output);
}

Tensor MultiHeadAttention::extend(const Tensor& x, TokenHistory& history,
                                  std::span<const int32_t> rows) const {
  const KeyValues token = project(x, x);
  history.keys.push_back(token.keys);
  history.values.push_back(token.values);
  return output(history_attention(query(x), history.keys, history.values, rows, config.heads));
}

Tensor MultiHeadAttention::operator()(const Tensor& query_input, const Tensor& key_input,
                                      const Tensor& value_input,
                                      const AttentionContext& context) const {
  return attend(query_input, project(key_input, value_input), context);
}

}  // namespace gs::nn
