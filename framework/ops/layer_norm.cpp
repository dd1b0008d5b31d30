#include "framework/ops/layer_norm.h"

#include "framework/backend/layer_norm.h"
#include "framework/core/profiler.h"
#include "framework/ops/norm_checks.h"

namespace gs {

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon) {
  const OperationTimer timer("layer_norm");
  check_norm("layer_norm", x, epsilon);
  const DType parameters = check_norm_parameters("layer_norm", weight, bias, x);
  const backend::NormOptions options{.centered = true, .epsilon = epsilon};
  Array y = Array::like(x.value()), statistics = norm_statistics(x.value());
  on_device(x.device(), [&](auto on) {
    backend::layer_norm(on, y, statistics, x.value(), weight.value(), bias.value(), options);
  });
  // With n = (x - mean) / deviation and g = dy * weight:
  // dx = (g - mean(g) - n * mean(g * n)) / deviation, dweight = sum(dy * n), dbias = sum(dy)
  return record("layer_norm", y, {x, weight, bias},
                [x = Saved(x.value()), weight = Saved(weight.value()), statistics, options,
                 width = Shape{x.size(-1)}, parameters](const Array& dy, const Needs& needs) {
                  backend::NormGradients gradients;
                  if (needs[0]) gradients.dx = Array::like(dy);
                  if (needs[1]) gradients.dweight = Array::empty(width, parameters, dy.device());
                  if (needs[2]) gradients.dbias = Array::empty(width, parameters, dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::layer_norm_backward(on, gradients, dy, x.value(), statistics,
                                                 weight.value(), options);
                  });
                  return Gradients{gradients.dx, gradients.dweight, gradients.dbias};
                });
}

}  // namespace gs
