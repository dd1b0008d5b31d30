#include "framework/nn/rms_norm.h"

#include "framework/nn/init.h"
#include "framework/ops/rms_norm.h"

namespace gs::nn {

RmsNorm::RmsNorm(int64_t width, double epsilon)
    : weight(*this, "weight", constant({width}, 1), {.decay = false}), epsilon(epsilon) {}

Tensor RmsNorm::operator()(const Tensor& x) const { return rms_norm(x, weight, epsilon); }

}  // namespace gs::nn
