#include "framework/ops/residual.h"

#include "framework/backend/dropout.h"
#include "framework/backend/layer_norm.h"
#include "framework/core/profiler.h"
#include "framework/ops/norm_checks.h"

namespace gs {
namespace {

using backend::DropoutMask;

void check_branch(const char* name, const Tensor& x, const Tensor& branch, double dropout) {
  check_floating(name, x);
  check(x.shape() == branch.shape() && x.dtype() == branch.dtype() && x.device() == branch.device(),
        "{}: input and branch must be alike, got {} {} on {} and {} {} on {}", name, x.shape(),
        x.dtype(), x.device(), branch.shape(), branch.dtype(), branch.device());
  check(dropout >= 0 && dropout <= 1, "{}: dropout must be in [0, 1], got {}", name, dropout);
}

DropoutMask mask_of(double dropout, bool training, Generator& generator) {
  if (!training || dropout == 0) return {};
  return DropoutMask::of(dropout, generator.next());
}

}  // namespace

Tensor residual(const Tensor& x, const Tensor& branch, double dropout, bool training,
                Generator& generator) {
  const OperationTimer timer("residual");
  check_branch("residual", x, branch, dropout);
  const DropoutMask mask = mask_of(dropout, training, generator);
  Array y = Array::like(x.value());
  on_device(x.device(),
            [&](auto on) { backend::residual(on, y, x.value(), branch.value(), mask); });
  // dx = dy, dbranch = dropout(dy)
  return record("residual", y, {x, branch}, [mask](const Array& dy, const Needs& needs) {
    if (!needs[1] || mask.threshold == 0) return Gradients{dy, dy};
    Array dbranch = Array::like(dy);
    on_device(dy.device(), [&](auto on) { backend::dropout(on, dbranch, dy, mask); });
    return Gradients{dy, dbranch};
  });
}

Tensor residual_layer_norm(const Tensor& x, const Tensor& branch, const Tensor& weight,
                           const Tensor& bias, double epsilon, double dropout, bool training,
                           Generator& generator) {
  constexpr const char* kName = "residual_layer_norm";
  const OperationTimer timer(kName);
  check_norm(kName, x, epsilon);
  check_branch(kName, x, branch, dropout);
  const DType parameters = check_norm_parameters(kName, weight, bias, x);
  const backend::NormOptions options{.centered = true, .epsilon = epsilon};
  const DropoutMask mask = mask_of(dropout, training, generator);
  Array y = Array::like(x.value()), sum = Array::like(y), statistics = norm_statistics(y);
  on_device(x.device(), [&](auto on) {
    backend::residual_layer_norm(on, y, sum, statistics, x.value(), branch.value(), mask,
                                 weight.value(), bias.value(), options);
  });
  // dx is the gradient of layer_norm, dbranch = dropout(dx)
  return record(kName, y, {x, branch, weight, bias},
                [sum, weight = Saved(weight.value()), statistics, options, mask,
                 width = Shape{x.size(-1)}, parameters](const Array& dy, const Needs& needs) {
                  backend::NormGradients gradients;
                  if (needs[0] || needs[1]) gradients.dx = Array::like(dy);
                  if (needs[1] && mask.threshold > 0) gradients.dbranch = Array::like(dy);
                  if (needs[2]) gradients.dweight = Array::empty(width, parameters, dy.device());
                  if (needs[3]) gradients.dbias = Array::empty(width, parameters, dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::layer_norm_backward(on, gradients, dy, sum, statistics, weight.value(),
                                                 options, mask);
                  });
                  return Gradients{gradients.dx,
                                   gradients.dbranch.defined() ? gradients.dbranch : gradients.dx,
                                   gradients.dweight, gradients.dbias};
                });
}

}  // namespace gs
