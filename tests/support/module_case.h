#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/nn/module.h"
#include "tests/support/pytorch_operations.h"

namespace gs::test {

// The outputs of a module by the names of the case, from its inputs.
using ModuleCall = std::function<std::map<std::string, Tensor>(const FixtureInputs& inputs)>;

// Gives `module` the parameters of a case of tests/data/pytorch/<group>.json and compares all its
// outputs and all gradients, of parameters and inputs: float64 at 1e-10 (the file holds 12
// digits), float32 at 1e-5. On each device.
void expect_pytorch_module(const std::string& group, const std::string& name, nn::Module& module,
                           const ModuleCall& call);

// Holds a module against what all modules must do, with random parameters; `function` calls it.
// Checked: gradients against differences; that each parameter gets a gradient, finite and not all
// zero (that of a key's bias is, up to rounding: softmax does not see what all keys have in
// common); float32 against float64; that no node is left; and that a CUDA device, where one is,
// gives the numbers of the CPU. `function` must not hold tensors of its own.
void check_module(nn::Module& module,
                  const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs);

// Other values for all parameters, in [-1/2, 1/2), as float32 holds them.
void randomize(nn::Module& module, uint64_t seed);

}  // namespace gs::test
