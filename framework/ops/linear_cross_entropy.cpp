#include "framework/ops/linear_cross_entropy.h"

#include "framework/backend/linear_cross_entropy.h"
#include "framework/core/profiler.h"
#include "framework/ops/linear_checks.h"
#include "framework/ops/target_loss.h"

namespace gs {
namespace {

// Memory for the gradient of an input, where one will be asked for.
Array gradient_for(const Tensor& input) {
  return recording() && input.needs_grad() ? Array::like(input.value()) : Array();
}

}  // namespace

Loss linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const Tensor& targets, const CrossEntropyOptions& options) {
  const OperationTimer timer("linear_cross_entropy");
  check_linear("linear_cross_entropy", x, weight, bias);
  check_targets("linear_cross_entropy", "input", x, weight.size(0), targets, options);
  // With dlogits of cross_entropy: dx = dlogits weight, dweight = dlogits^T x, dbias = sum of the
  // rows of dlogits
  backend::LinearCrossEntropyGradients gradients{gradient_for(x), gradient_for(weight),
                                                 gradient_for(bias)};
  const Array sums = on_device(x.device(), [&](auto on) {
    return backend::linear_cross_entropy(on, gradients, x.value(), in_type_of(x, weight),
                                         in_type_of(x, bias), targets.value(),
                                         {options.ignore_index, options.label_smoothing});
  });
  return loss_with_gradients(
      "linear_cross_entropy", sums, {x, weight, bias},
      {std::move(gradients.dx), std::move(gradients.dweight), std::move(gradients.dbias)});
}

}  // namespace gs
