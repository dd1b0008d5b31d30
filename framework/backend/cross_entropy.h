#pragma once

#include <optional>

#include "framework/backend/array.h"

namespace gs::backend {

struct CrossEntropyOptions {
  std::optional<int64_t> ignore_index = std::nullopt;  // rows with this target do not count
  double label_smoothing = 0;
};

// Over the rows that count, in double precision and in an order that depends on sizes alone.
struct CrossEntropySums {
  double loss = 0, negative_log_likelihood = 0;
  int64_t count = 0, correct = 0;  // correct: the target is the first largest logit
};

// logits (..., V) as rows; targets int32, one a row, in 0..V - 1 or the ignored one. Row i leaves
// in `statistics` (N, 2), of the type of the logits, its maximum and sum(exp(logit - maximum)).
CrossEntropySums cross_entropy(Cpu, Array& statistics, const Array& logits, const Array& targets,
                               CrossEntropyOptions options);

// dlogits = dloss * (softmax(logits) - target distribution), dloss of one element; 0 in ignored
// rows and in rows of -infinity.
void cross_entropy_backward(Cpu, Array& dlogits, const Array& dloss, const Array& statistics,
                            const Array& logits, const Array& targets, CrossEntropyOptions options);

}  // namespace gs::backend
