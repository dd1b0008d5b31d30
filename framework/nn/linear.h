#pragma once

#include "framework/nn/module.h"

namespace gs::nn {

// y = x weight^T + bias. Xavier-uniform weight (out, in), bias (out) of zeros.
struct Linear : Module {
  struct Config {
    bool bias = true;
  };

  Linear(int64_t in, int64_t out, Config config);
  Linear(int64_t in, int64_t out) : Linear(in, out, Config()) {}
  Tensor operator()(const Tensor& x) const;  // (..., in) -> (..., out)

  Parameter weight;
  Parameter bias;  // undefined without
};

}  // namespace gs::nn
