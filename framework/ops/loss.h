#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// A loss as a sum over what was counted, averaged only at the step: micro-batches and validation
// then add up sums and counts, never averages of averages.
struct Loss {
  Tensor sum;                               // scalar
  int64_t count = 0;                        // targets that counted
  Tensor negative_log_likelihood_sum = {};  // scalar without a gradient; undefined for mse_loss
  int64_t correct = 0;                      // predictions whose largest logit is the target's

  // sum / count; of nothing it is 0, with zero gradients.
  Tensor mean() const;
};

}  // namespace gs
