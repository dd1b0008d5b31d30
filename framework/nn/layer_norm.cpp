#include "framework/nn/layer_norm.h"

#include "framework/nn/init.h"
#include "framework/ops/layer_norm.h"

namespace gs::nn {

LayerNorm::LayerNorm(int64_t width, double epsilon)
    : weight(*this, "weight", constant({width}, 1), {.decay = false}),
      bias(*this, "bias", constant({width}, 0), {.decay = false}),
      epsilon(epsilon) {}

Tensor LayerNorm::operator()(const Tensor& x) const { return layer_norm(x, weight, bias, epsilon); }

}  // namespace gs::nn
