#pragma once

#include <memory>
#include <vector>

#include "framework/core/random.h"
#include "models/transformer.h"

namespace gs::test {

// Sentences of token ids, packed.
inline Sequences sequences(const std::vector<std::vector<int32_t>>& all) {
  Sequences result;
  for (const std::vector<int32_t>& one : all) result.append(one);
  return result;
}

inline TransformerConfig small_config() {
  TransformerConfig config;
  config.source_vocabulary = 13;
  config.target_vocabulary = 11;
  config.width = 12;
  config.heads = 3;
  config.feed_forward_width = 20;
  config.maximum_length = 24;
  return config;
}

// Random parameters, the same for the same seed, wide enough for outputs that differ clearly.
inline std::unique_ptr<Transformer> small_transformer(uint64_t seed,
                                                      TransformerConfig config = small_config()) {
  set_seed(seed);
  auto transformer = std::make_unique<Transformer>(config);
  transformer->evaluate();
  return transformer;
}

// Rows [first, first + count) of (N, V), flat.
inline std::vector<double> rows_of(const Tensor& x, int64_t first, int64_t count) {
  const std::vector<double> values = x.values<double>();
  const int64_t width = x.size(1);
  return {values.begin() + first * width, values.begin() + (first + count) * width};
}

}  // namespace gs::test
