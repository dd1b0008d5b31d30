#pragma once

#include "framework/nn/module.h"

namespace gs::nn {

// In training sets elements to 0 with `probability` and scales the others up; else does nothing.
struct Dropout : Module {
  explicit Dropout(double probability);
  Tensor operator()(const Tensor& x) const;

  const double probability;
};

}  // namespace gs::nn
