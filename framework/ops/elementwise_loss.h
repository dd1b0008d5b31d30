#pragma once

#include "framework/ops/loss.h"

namespace gs {

// Squared differences (x - target)^2, of one shape and type; count = elements. Gradients for both.
Loss mse_loss(const Tensor& x, const Tensor& target);

// Binary cross entropy of sigmoid(x) with targets of x's shape and type, probabilities in [0, 1]
// (not checked); count = elements. Exact for logits of any size. Gradients for both.
Loss binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target);

}  // namespace gs
