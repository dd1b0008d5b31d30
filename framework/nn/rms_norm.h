#pragma once

#include "framework/nn/module.h"

namespace gs::nn {

// Divides the last dimension by its root mean square, times weight (1 at first).
struct RmsNorm : Module {
  explicit RmsNorm(int64_t width, double epsilon = 1e-5);
  Tensor operator()(const Tensor& x) const;  // (..., C) -> (..., C)

  Parameter weight;  // (C)
  const double epsilon;
};

}  // namespace gs::nn
