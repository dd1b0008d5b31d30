#include "framework/nn/linear.h"

#include "framework/nn/init.h"
#include "framework/ops/linear.h"

namespace gs::nn {

Linear::Linear(int64_t in, int64_t out, Config config)
    : weight(*this, "weight", xavier_uniform({out, in})),
      bias(*this, "bias", config.bias ? constant({out}, 0) : Tensor(), {.decay = false}) {}

Tensor Linear::operator()(const Tensor& x) const { return linear(x, weight, bias); }

}  // namespace gs::nn
