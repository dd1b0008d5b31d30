#include "framework/nn/embedding.h"

#include <algorithm>
#include <cmath>

#include "framework/nn/init.h"
#include "framework/ops/embedding.h"

namespace gs::nn {
namespace {

Tensor initial_table(int64_t entries, int64_t width, std::optional<int64_t> padding_index) {
  check(entries >= 0 && width >= 1,
        "embedding: needs a width of at least 1, got {} entries of width {}", entries, width);
  Array table = normal({entries, width}, 0, 1 / std::sqrt(static_cast<double>(width))).value();
  if (padding_index) {
    check(*padding_index >= 0 && *padding_index < entries,
          "embedding: the padding index must be 0 to {}, got {}", entries - 1, *padding_index);
    std::fill_n(table.data<float>() + *padding_index * width, width, 0.0f);
  }
  return Tensor(table);
}

}  // namespace

// Decay would move the padding row, which has no gradient to hold it: the whole table is exempt.
Embedding::Embedding(int64_t entries, int64_t width, Config config)
    : weight(*this, "weight", initial_table(entries, width, config.padding_index),
             {.decay = !config.padding_index.has_value()}),
      config(config) {}

Tensor Embedding::operator()(const Tensor& indices) const {
  return embedding(weight, indices, {.padding_index = config.padding_index});
}

}  // namespace gs::nn
