#include "framework/ops/cross_entropy.h"

#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/target_loss.h"

namespace gs {

Loss cross_entropy(const Tensor& logits, const Tensor& targets,
                   const CrossEntropyOptions& options) {
  const OperationTimer timer("cross_entropy");
  check(logits.rank() >= 1 && is_computable(logits),
        "cross_entropy: logits must be (..., V) in float32 or float64, got {} {}", logits.shape(),
        logits.dtype());
  check_targets("cross_entropy", "logits", logits, logits.size(-1), targets, options);
  // With q = (1 - label_smoothing) * one_hot(target) + label_smoothing / V:
  // dlogits = dloss * (softmax(logits) - q)
  Array dlogits = recording() && logits.needs_grad() ? Array::like(logits.value()) : Array();
  const Array sums = on_device(logits.device(), [&](auto on) {
    return backend::cross_entropy(on, dlogits, logits.value(), targets.value(),
                                  {options.ignore_index, options.label_smoothing});
  });
  return loss_with_gradients("cross_entropy", sums, {logits}, {dlogits});
}

}  // namespace gs
