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

  CrossEntropySums& operator+=(const CrossEntropySums& other) {
    loss += other.loss;
    negative_log_likelihood += other.negative_log_likelihood;
    count += other.count;
    correct += other.correct;
    return *this;
  }
};

// logits (..., V) as rows; targets int32, one a row, in 0..V - 1 or the ignored one. Where dlogits
// is defined it becomes the gradient of the summed loss, softmax(logits) - target distribution; 0
// in ignored rows and in rows of -infinity. It may be the logits themselves.
CrossEntropySums cross_entropy(Cpu, Array& dlogits, const Array& logits, const Array& targets,
                               const CrossEntropyOptions& options);
CrossEntropySums cross_entropy(Cuda, Array& dlogits, const Array& logits, const Array& targets,
                               const CrossEntropyOptions& options);

}  // namespace gs::backend
