#pragma once

#include <optional>

#include "framework/ops/loss.h"

namespace gs {

struct CrossEntropyOptions {
  // Rows with this target do not count. It selects rows, never classes: a real class that is
  // ignored as a target still takes part in the softmax of the other rows.
  std::optional<int64_t> ignore_index = std::nullopt;
  // The share of the target that is spread evenly over all V classes, the right one included.
  double label_smoothing = 0;
};

// The cross entropy of softmax(logits), logits (..., V), with int32 targets (...), in one pass. A
// target outside 0..V - 1 that is not ignored is refused. Sums are taken in double precision. A row
// whose logits are all -infinity has an infinite loss and a zero gradient.
Loss cross_entropy(const Tensor& logits, const Tensor& targets,
                   const CrossEntropyOptions& options = {});

}  // namespace gs
