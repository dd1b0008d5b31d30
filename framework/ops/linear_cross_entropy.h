#pragma once

#include "framework/ops/cross_entropy.h"

namespace gs {

// cross_entropy(linear(x, weight, bias), targets) of an output layer with its loss: x (..., C),
// weight (V, C), bias (V) or undefined, int32 targets (...). All that cross_entropy promises holds.
// The logits never stand whole in memory; gradients are computed together with the loss, so that
// changes of the inputs between it and backward do not matter.
Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& targets, const CrossEntropyOptions& options = {});

}  // namespace gs
