#include "framework/optim/clip.h"

#include <cmath>

#include "framework/backend/optimizer.h"
#include "framework/backend/scale.h"
#include "framework/core/profiler.h"

namespace gs {

double clip_gradient_norm(nn::Module& model, double maximum) {
  const OperationTimer timer("clip_gradient_norm", Phase::kOther);
  check(maximum > 0, "clip_gradient_norm: the maximum must be above 0, got {}", maximum);
  std::vector<Array> gradients;
  for (const nn::NamedParameter& named : model.parameters()) {
    const Tensor gradient = named.parameter->tensor().gradient();
    if (gradient.defined()) gradients.push_back(gradient.value());
  }
  double sum = 0;
  for (const Array& gradient : gradients) {
    sum += on_device(gradient.device(),
                     [&](auto on) { return backend::sum_of_squares(on, gradient); });
  }
  const double norm = std::sqrt(sum);
  if (!std::isfinite(norm)) {
    model.clear_gradients();
  } else if (norm > maximum) {
    for (Array& gradient : gradients) {
      on_device(gradient.device(),
                [&](auto on) { backend::scale(on, gradient, gradient, maximum / (norm + 1e-6)); });
    }
  }
  return norm;
}

}  // namespace gs
