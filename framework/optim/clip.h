#pragma once

#include "framework/nn/module.h"

namespace gs {

// Scales all gradients of the model so that their joint norm is at most `maximum` (infinity: no
// limit), by maximum / (norm + 1e-6). Returns the norm before. A norm that is not finite would
// spoil every parameter: the gradients are then dropped, and the optimizer's next step moves
// nothing and counts as skipped.
double clip_gradient_norm(nn::Module& model, double maximum);

}  // namespace gs
