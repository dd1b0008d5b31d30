#pragma once

#include "framework/nn/module.h"

namespace gs::nn {

// Normalises the last dimension to mean 0 and variance 1, times weight plus bias (1 and 0 at
// first).
struct LayerNorm : Module {
  explicit LayerNorm(int64_t width, double epsilon = 1e-5);
  Tensor operator()(const Tensor& x) const;  // (..., C) -> (..., C)

  Parameter weight, bias;  // (C)
  const double epsilon;
};

}  // namespace gs::nn
