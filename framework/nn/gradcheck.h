#pragma once

#include "framework/nn/module.h"
#include "framework/tensor/gradcheck.h"

namespace gs::nn {

// Compares the gradients of `function`, which calls `model`, with differences in double precision,
// as gradcheck of tensors does: for every parameter that needs a gradient, tied ones once, and
// every floating input. The message names the worst one by its path. For the time of the check the
// parameters are float64; afterwards the model has its own tensors back, gradients included.
// Random numbers of the default generator are drawn alike in each call, so that dropout is checked
// as well.
GradcheckResult gradcheck(Module& model,
                          const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

}  // namespace gs::nn
