#pragma once

#include "framework/nn/dropout.h"
#include "framework/nn/linear.h"

namespace gs::nn {

enum class Activation { kRelu, kGelu };  // GELU is the exact one

// "relu" or "gelu"; anything else is refused.
Activation parse_activation(const std::string& name);

// second(dropout(activation(first(x)))): the same two layers at every position.
struct FeedForward : Module {
  struct Config {
    Activation activation = Activation::kRelu;
    double dropout = 0;  // on the inner activations
  };

  FeedForward(int64_t width, int64_t inner_width, Config config);
  Tensor operator()(const Tensor& x) const;  // (..., C) -> (..., C), inside (..., F)

  const Config config;
  Child<Linear> first, second;
  Child<Dropout> dropout;
};

}  // namespace gs::nn
