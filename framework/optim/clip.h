#pragma once

#include "framework/nn/module.h"

namespace gs {

// The joint norm of all gradients of the model.
double gradient_norm(const nn::Module& model);

// What clipping multiplies gradients of this norm by: 1 up to `maximum` (infinity: no limit), else
// maximum / (norm + 1e-6); NaN where the norm is not finite, which makes a step move nothing:
//   const double norm = gradient_norm(model);
//   optimizer.step({.gradient_scale = clip_factor(norm, 1.0)});
double clip_factor(double norm, double maximum);

// The same with gradients that are changed, one more pass over them: scales all by the factor and
// returns the norm before. A norm that is not finite would spoil every parameter: the gradients are
// then dropped, and the optimizer's next step moves nothing and counts as skipped.
double clip_gradient_norm(nn::Module& model, double maximum);

}  // namespace gs
