#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace gs::test {

using Operation = std::function<Tensor(const std::vector<Tensor>& inputs)>;

// The expected elements of the result, from those of the inputs; computed independently.
using Reference =
    std::function<std::vector<double>(const std::vector<std::vector<double>>& inputs)>;

struct OperationOptions {
  double value_tolerance = 1e-12;    // float64 against the reference
  double float_tolerance = 1e-5;     // float32 against float64, values and gradients
  double gradient_tolerance = 1e-6;  // gradients against differences
  bool has_gradient = true;          // of the floating inputs
  bool has_kinks = false;            // elements of the inputs may lie where there is no derivative
};

// Holds an operation against everything that all operations must do, and fails the running test
// with messages that start with `name`. Floating inputs are given in any type and taken in float32
// and float64, rounded to float32 first; others as they are. It must draw no random numbers.
// Checked: float64 against the reference (if any); gradients against differences; float32 against
// float64; each gradient alone against all together; no input, no upstream gradient changed; no
// node and no memory left; and that a change in place of an input or the result, after it was
// computed, makes backward throw or leaves all gradients as they were. The same again on a CUDA
// device where one is, with the gradients of the CPU in place of differences: the operation must
// give its result on the device of its inputs.
void check_operation(const std::string& name, const Operation& operation,
                     const std::vector<Tensor>& inputs, const Reference& reference = {},
                     const OperationOptions& options = {});

// The part of check_operation that runs on a CUDA device, against the CPU. Here the operation may
// draw random numbers, if it makes their generator itself.
void check_on_cuda(const std::string& name, const Operation& operation,
                   const std::vector<Tensor>& inputs, const OperationOptions& options = {});

// What check_operation finds wrong on the CPU, and on a CUDA device, one line each; empty when all
// is well.
std::vector<std::string> faults_of_operation(const Operation& operation,
                                             const std::vector<Tensor>& inputs,
                                             const Reference& reference = {},
                                             const OperationOptions& options = {});
std::vector<std::string> faults_on_cuda(const Operation& operation,
                                        const std::vector<Tensor>& inputs,
                                        const Reference& reference = {},
                                        const OperationOptions& options = {});

}  // namespace gs::test
