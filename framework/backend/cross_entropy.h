#pragma once

#include <optional>

#include "framework/backend/array.h"

namespace gs::backend {

struct CrossEntropyOptions {
  std::optional<int64_t> ignore_index = std::nullopt;  // rows with this target do not count
  double label_smoothing = 0;
};

// The places of the sums over the rows that count, and of their number, in what cross_entropy
// returns: float64 (kCrossEntropySums) on the device of the logits, which is not waited for. They
// are added in double precision and in an order that depends on sizes alone.
enum CrossEntropySum : int64_t {
  kLossSum,
  kNegativeLogLikelihoodSum,
  kCountSum,
  kCorrectSum,  // rows whose target is the first largest logit
  kCrossEntropySums
};

// logits (..., V) as rows; targets int32, one a row, in 0..V - 1 or the ignored one. Where dlogits
// is defined it becomes the gradient of the summed loss, softmax(logits) - target distribution; 0
// in ignored rows and in rows of -infinity. It may be the logits themselves.
Array cross_entropy(Cpu, Array& dlogits, const Array& logits, const Array& targets,
                    const CrossEntropyOptions& options);
Array cross_entropy(Cuda, Array& dlogits, const Array& logits, const Array& targets,
                    const CrossEntropyOptions& options);

}  // namespace gs::backend
