#pragma once

#include <optional>

#include "framework/tensor/tensor.h"

namespace gs {

struct EmbeddingOptions {
  // The row that stands for padding: it is looked up like any other, but its gradient is exactly 0.
  std::optional<int64_t> padding_index = std::nullopt;
};

// The rows of `weight` (V, C) at `indices`, int32 of any shape: (..., C). An index outside
// 0..V - 1 is refused. The gradient is dense, (V, C), and adds up the uses of a row in order of
// their positions, whatever the number of threads.
Tensor embedding(const Tensor& weight, const Tensor& indices, const EmbeddingOptions& options = {});

}  // namespace gs
