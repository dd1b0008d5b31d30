#include "framework/optim/clip.h"

#include <cmath>
#include <limits>

#include "framework/backend/optimizer.h"
#include "framework/backend/scale.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

std::vector<Array> gradients_of(const nn::Module& model) {
  std::vector<Array> gradients;
  for (const nn::NamedParameter& named : model.parameters()) {
    const Tensor gradient = named.parameter->tensor().gradient();
    if (!gradient.defined()) continue;
    gradients.push_back(gradient.value());
    check(gradient.device() == gradients.front().device(),
          "gradient norm: gradients must be on one device, got {} and {} for {}; move the model as "
          "a whole",
          gradients.front().device(), gradient.device(), named.path);
  }
  return gradients;
}

double norm_of(const std::vector<Array>& gradients) {
  if (gradients.empty()) return 0;
  const Array sum = on_device(gradients.front().device(),
                              [&](auto on) { return backend::sum_of_squares(on, gradients); });
  return std::sqrt(sum.values<double>()[0]);
}

}  // namespace

double gradient_norm(const nn::Module& model) {
  const OperationTimer timer("gradient_norm", Phase::kOther);
  return norm_of(gradients_of(model));
}

double clip_factor(double norm, double maximum) {
  check(maximum > 0, "clip_factor: the maximum must be above 0, got {}", maximum);
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return norm > maximum ? maximum / (norm + 1e-6) : 1;
}

double clip_gradient_norm(nn::Module& model, double maximum) {
  const OperationTimer timer("clip_gradient_norm", Phase::kOther);
  check(maximum > 0, "clip_gradient_norm: the maximum must be above 0, got {}", maximum);
  std::vector<Array> gradients = gradients_of(model);
  const double norm = norm_of(gradients), factor = clip_factor(norm, maximum);
  if (std::isnan(factor)) {
    model.clear_gradients();
  } else if (factor != 1) {
    for (Array& gradient : gradients) {
      on_device(gradient.device(),
                [&](auto on) { backend::scale(on, gradient, gradient, factor); });
    }
  }
  return norm;
}

}  // namespace gs
