#include "framework/nn/feed_forward.h"

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
  const Tensor inner = first(x);
  return second(dropout(config.activation == Activation::kRelu ? relu(inner) : gelu(inner)));
}

}  // namespace gs::nn
