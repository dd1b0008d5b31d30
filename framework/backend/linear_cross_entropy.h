#pragma once

#include "framework/backend/cross_entropy.h"

namespace gs::backend {

// Of the summed loss; one that is undefined is not wanted.
struct LinearCrossEntropyGradients {
  Array dx, dweight, dbias;  // shaped as x, weight and bias
};

// cross_entropy of the logits x weight^T + bias, which never stand whole in memory: x (..., C) as
// rows, weight (V, C), bias (V) or undefined. The gradients that are defined are written.
Array linear_cross_entropy(Cpu, LinearCrossEntropyGradients& gradients, const Array& x,
                           const Array& weight, const Array& bias, const Array& targets,
                           const CrossEntropyOptions& options);
Array linear_cross_entropy(Cuda, LinearCrossEntropyGradients& gradients, const Array& x,
                           const Array& weight, const Array& bias, const Array& targets,
                           const CrossEntropyOptions& options);

}  // namespace gs::backend
