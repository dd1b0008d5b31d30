#include "framework/ops/rms_norm.h"

#include "framework/backend/layer_norm.h"
#include "framework/core/profiler.h"
#include "framework/ops/norm_checks.h"

namespace gs {

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const OperationTimer timer("rms_norm");
  check_norm("rms_norm", x, epsilon);
  check_norm_parameter("rms_norm", "weight", weight, x);
  const backend::NormOptions options{.centered = false, .epsilon = epsilon};
  Array y = Array::like(x.value()), statistics = norm_statistics(x.value());
  on_device(x.device(), [&](auto on) {
    backend::layer_norm(on, y, statistics, x.value(), weight.value(), Array(), options);
  });
  // With r = sqrt(mean(x^2) + epsilon), n = x / r and g = dy * weight:
  // dx = (g - n * mean(g * n)) / r, dweight = sum(dy * n)
  return record("rms_norm", y, {x, weight},
                [x = Saved(x.value()), weight = Saved(weight.value()), statistics, options,
                 width = Shape{x.size(-1)},
                 parameters = weight.dtype()](const Array& dy, const Needs& needs) {
                  backend::NormGradients gradients;
                  if (needs[0]) gradients.dx = Array::like(dy);
                  if (needs[1]) gradients.dweight = Array::empty(width, parameters, dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::layer_norm_backward(on, gradients, dy, x.value(), statistics,
                                                 weight.value(), options);
                  });
                  return Gradients{gradients.dx, gradients.dweight};
                });
}

}  // namespace gs
