#include "framework/nn/feed_forward.h"

#include "framework/ops/linear.h"
#include "framework/ops/unary.h"

namespace gs::nn {

Activation parse_activation(const std::string& name) {
  if (name == "relu") return Activation::kRelu;
  check(name == "gelu", "activation: unknown, got '{}'; use relu or gelu", name);
  return Activation::kGelu;
}

FeedForward::FeedForward(int64_t width, int64_t inner_width, Config config)
    : config(config),
      first(*this, "first", width, inner_width),
      second(*this, "second", inner_width, width),
      dropout(*this, "dropout", config.dropout) {}

Tensor FeedForward::operator()(const Tensor& x) const {
  if (config.activation == Activation::kGelu) return second(dropout(gelu(first(x))));
  return second(linear_relu(x, first->weight, first->bias, config.dropout, training()));
}

}  // namespace gs::nn
