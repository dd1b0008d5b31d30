#pragma once

#include <optional>

#include "framework/tensor/tensor.h"

namespace gs {

// A whole number that a device may still be counting: to read it is to wait for it.
class Count {
 public:
  Count(int64_t value = 0) : value_(value) {}
  // A float64 on any device.
  explicit Count(Array value) : array_(std::move(value)) {}

  operator int64_t() const;
  // As a float64 on the device.
  Array array(Device device) const;

 private:
  Array array_;
  mutable std::optional<int64_t> value_;
};

// A loss as a sum over what was counted, averaged only at the step: micro-batches and validation
// then add up sums and counts, never averages of averages. All of it stays on the device until it
// is read.
struct Loss {
  Tensor sum;                               // scalar
  Count count = 0;                          // targets that counted
  Tensor negative_log_likelihood_sum = {};  // scalar without a gradient; undefined for mse_loss
  Count correct = 0;                        // predictions whose largest logit is the target's

  // sum / count; of nothing it is 0, with zero gradients.
  Tensor mean() const;
};

}  // namespace gs
