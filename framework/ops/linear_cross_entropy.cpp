#include "framework/ops/linear_cross_entropy.h"

#include "framework/backend/linear_cross_entropy.h"
#include "framework/core/profiler.h"
#include "framework/ops/target_loss.h"

namespace gs {
namespace {

void check_layer(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(weight.rank() == 2 && is_floating(weight.dtype()),
        "linear_cross_entropy: the weight must be (V, C) in float32 or float64, got {} {}",
        weight.shape(), weight.dtype());
  check(x.rank() >= 1 && x.size(-1) == weight.size(1),
        "linear_cross_entropy: the last size of the input must be {}, got {}; the weight is {}",
        weight.size(1), x.shape(), weight.shape());
  check(x.dtype() == weight.dtype() && x.device() == weight.device(),
        "linear_cross_entropy: input is {} on {}, weight {} on {}; convert one", x.dtype(),
        x.device(), weight.dtype(), weight.device());
  if (!bias.defined()) return;
  check(bias.shape() == Shape({weight.size(0)}) && bias.dtype() == x.dtype() &&
            bias.device() == x.device(),
        "linear_cross_entropy: the bias must be [{}] {} on {}, got {} {} on {}", weight.size(0),
        x.dtype(), x.device(), bias.shape(), bias.dtype(), bias.device());
}

// Memory for the gradient of an input, where one will be asked for.
Array gradient_for(const Tensor& input) {
  return recording() && input.needs_grad() ? Array::like(input.value()) : Array();
}

}  // namespace

Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& targets, const CrossEntropyOptions& options) {
  const OperationTimer timer("linear_cross_entropy");
  check_layer(x, weight, bias);
  check_targets("linear_cross_entropy", "input", x, weight.size(0), targets, options);
  // With dlogits of cross_entropy: dx = dlogits weight, dweight = dlogits^T x, dbias = sum of the
  // rows of dlogits
  backend::LinearCrossEntropyGradients gradients{gradient_for(x), gradient_for(weight),
                                                 gradient_for(bias)};
  const backend::CrossEntropySums sums = on_device(x.device(), [&](auto on) {
    return backend::linear_cross_entropy(on, gradients, x.value(), weight.value(), bias.value(),
                                         targets.value(),
                                         {options.ignore_index, options.label_smoothing});
  });
  return loss_with_gradients(
      "linear_cross_entropy", sums, {x, weight, bias},
      {std::move(gradients.dx), std::move(gradients.dweight), std::move(gradients.dbias)});
}

}  // namespace gs
