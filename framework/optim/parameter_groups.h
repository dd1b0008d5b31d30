#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/nn/module.h"

namespace gs {

// Parameters that are treated alike by an optimizer.
struct ParameterGroup {
  std::string name;
  std::function<bool(const nn::NamedParameter&)> selects;
  double learning_rate_scale = 1;
  std::optional<double> weight_decay = std::nullopt;  // in place of the optimizer's
};

// Two groups: "without decay" for what says so, as biases, norms and embeddings with a padding row
// do, and "with decay" for the rest.
std::vector<ParameterGroup> default_groups();

// One parameter as an optimizer sees it.
struct OptimizedParameter {
  std::string path;
  Tensor tensor;
  double learning_rate_scale;
  double weight_decay;
  size_t group;
};

struct StepOptions {
  // Multiplies each gradient as it is read; see clip_factor. Where it is not finite nothing moves.
  double gradient_scale = 1;
};

// The parameters of a model, each once, each in the first group that selects it. A parameter that
// no group selects is refused, and a model that is spread over devices.
class OptimizedParameters {
 public:
  OptimizedParameters(const nn::Module& model, std::vector<ParameterGroup> groups,
                      double weight_decay);

  const std::vector<OptimizedParameter>& all() const { return parameters_; }
  // Whether there is anything to step with: a gradient has arrived for one of them, and the scale
  // is finite. Else the gradients are dropped.
  bool can_step(const StepOptions& options);
  void clear_gradients();
  // One line a group: its name, parameters, elements, decay.
  std::string summary() const;

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<OptimizedParameter> parameters_;
};

// Arrays of an optimizer by name, "<path>/first_moment", for checkpoints.
using OptimizerState = std::map<std::string, Array>;

// Copies what was saved into the memory of the arrays of the same names, since recorded steps know
// that memory; all or nothing: a missing or misshapen array is refused.
void restore_arrays(const OptimizerState& saved, OptimizerState targets);

}  // namespace gs
