#pragma once

#include "framework/backend/array.h"
#include "framework/backend/dropout_mask.h"

namespace gs::backend {

// Normalises the rows of x (N, C): y = (x - mean) / sqrt(variance + epsilon) * weight + bias.
// Without `centered` it is the RMS norm: mean is taken as 0. `weight` and `bias` (C) may be
// undefined. `statistics` (N, 2), of x's type, float32 for bfloat16, is for the gradient: the mean
// relative to the row's first element (0 without `centered`), which keeps its digits where the mean
// is large, and 1 / sqrt(variance + epsilon).
struct NormOptions {
  bool centered = true;
  double epsilon = 1e-5;
};
void layer_norm(Cpu, Array& y, Array& statistics, const Array& x, const Array& weight,
                const Array& bias, NormOptions options);
void layer_norm(Cuda, Array& y, Array& statistics, const Array& x, const Array& weight,
                const Array& bias, NormOptions options);

// The same for sum = x + dropout(branch) in place of x; `sum` (N, C) is kept for the gradient.
void residual_layer_norm(Cpu, Array& y, Array& sum, Array& statistics, const Array& x,
                         const Array& branch, const DropoutMask& dropout, const Array& weight,
                         const Array& bias, NormOptions options);
void residual_layer_norm(Cuda, Array& y, Array& sum, Array& statistics, const Array& x,
                         const Array& branch, const DropoutMask& dropout, const Array& weight,
                         const Array& bias, NormOptions options);

// Gradients from dy (N, C); those that are undefined are not computed. The sums over rows are taken
// in blocks that depend on N alone.
struct NormGradients {
  Array dx = {}, dweight = {}, dbias = {};
  Array dbranch = {};  // dropout(dx), the gradient of a residual branch; it needs dx
};
void layer_norm_backward(Cpu, NormGradients& gradients, const Array& dy, const Array& x,
                         const Array& statistics, const Array& weight, NormOptions options,
                         const DropoutMask& dropout = {});
void layer_norm_backward(Cuda, NormGradients& gradients, const Array& dy, const Array& x,
                         const Array& statistics, const Array& weight, NormOptions options,
                         const DropoutMask& dropout = {});

}  // namespace gs::backend
