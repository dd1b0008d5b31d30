#pragma once

#include "framework/backend/cross_entropy.h"

namespace gs::backend {

struct CrossEntropySums {
  double loss = 0, negative_log_likelihood = 0;
  int64_t count = 0, correct = 0;

  CrossEntropySums& operator+=(const CrossEntropySums& other) {
    loss += other.loss;
    negative_log_likelihood += other.negative_log_likelihood;
    count += other.count;
    correct += other.correct;
    return *this;
  }
  // In the order of CrossEntropySum.
  Array array() const {
    return Array::of<double>(
        {kCrossEntropySums},
        {loss, negative_log_likelihood, static_cast<double>(count), static_cast<double>(correct)});
  }
};

// cross_entropy over rows in memory.
template <typename T>
struct CrossEntropyRows {
  const T* logits;         // (rows, classes)
  const int32_t* targets;  // (rows)
  int64_t rows, classes;
  T* dlogits = nullptr;     // the gradient, may be the logits; null where it is not wanted
  const T* bias = nullptr;  // (classes), added to each row first; needs dlogits
  T* block_sums = nullptr;  // (blocks, classes): of the rows of dlogits in each block

  // Blocks have a fixed size, so that sums do not depend on the number of threads.
  static constexpr int64_t kBlock = 16;
  int64_t blocks() const { return (rows + kBlock - 1) / kBlock; }
};

CrossEntropySums cross_entropy_rows(const CrossEntropyRows<float>& rows,
                                    const CrossEntropyOptions& options);
CrossEntropySums cross_entropy_rows(const CrossEntropyRows<double>& rows,
                                    const CrossEntropyOptions& options);

}  // namespace gs::backend
