#include "framework/ops/elementwise_loss.h"

#include "framework/backend/elementwise_loss.h"
#include "framework/backend/scale.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

void check_alike(const char* operation, const Tensor& x, const Tensor& target) {
  check(is_floating(x.dtype()), "{}: needs float32 or float64, got {}; cast it first", operation,
        x.dtype());
  check(x.shape() == target.shape() && x.dtype() == target.dtype() && x.device() == target.device(),
        "{}: x and target must be alike, got {} {} on {} and {} {} on {}", operation, x.shape(),
        x.dtype(), x.device(), target.shape(), target.dtype(), target.device());
}

}  // namespace

Loss mse_loss(const Tensor& x, const Tensor& target) {
  const OperationTimer timer("mse_loss");
  check_alike("mse_loss", x, target);
  const Array sum = on_device(
      x.device(), [&](auto on) { return backend::mse_loss(on, x.value(), target.value()); });
  // dx = dloss * 2 (x - target), dtarget = -dx
  const auto backward = [x = Saved(x.value()), target = Saved(target.value())](const Array& dloss,
                                                                               const Needs& needs) {
    Array dx = Array::like(x.value()), dtarget;
    on_device(dloss.device(), [&](auto on) {
      backend::mse_loss_backward(on, dx, dloss, x.value(), target.value());
      if (!needs[1]) return;
      dtarget = Array::like(dx);
      backend::scale(on, dtarget, dx, -1);
    });
    return Gradients{dx, dtarget};
  };
  return {.sum = record("mse_loss", sum.to(x.dtype()), {x, target}, backward),
          .count = x.elements()};
}

Loss binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target) {
  const OperationTimer timer("binary_cross_entropy_with_logits");
  check_alike("binary_cross_entropy_with_logits", x, target);
  const Array sum = on_device(x.device(), [&](auto on) {
    return backend::binary_cross_entropy(on, x.value(), target.value());
  });
  // dx = dloss * (sigmoid(x) - target), dtarget = -dloss * x
  const auto backward = [x = Saved(x.value()), target = Saved(target.value())](const Array& dloss,
                                                                               const Needs& needs) {
    Array dx, dtarget;
    on_device(dloss.device(), [&](auto on) {
      if (needs[0]) {
        dx = Array::like(x.value());
        backend::binary_cross_entropy_backward(on, dx, dloss, x.value(), target.value());
      }
      if (needs[1]) {
        dtarget = Array::like(x.value());
        backend::binary_cross_entropy_target_backward(on, dtarget, dloss, x.value());
      }
    });
    return Gradients{dx, dtarget};
  };
  return {
      .sum = record("binary_cross_entropy_with_logits", sum.to(x.dtype()), {x, target}, backward),
      .count = x.elements(),
      .negative_log_likelihood_sum = Tensor(sum.to(x.dtype()))};
}

}  // namespace gs
