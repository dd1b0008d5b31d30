#pragma once

#include "framework/optim/parameter_groups.h"

namespace gs {

struct SgdConfig {
  double learning_rate = 1e-2;
  double momentum = 0;  // at least 0
  bool nesterov = false;
  double weight_decay = 0;  // added to the gradient
  std::vector<ParameterGroup> groups = default_groups();
};

// Stochastic gradient descent: v = momentum v + g, weight -= rate v (Nesterov: rate (g + momentum
// v)).
class Sgd {
 public:
  explicit Sgd(const nn::Module& model, SgdConfig config = {});

  // As Adam::step.
  void step(const StepOptions& options = {});

  double learning_rate() const { return config_.learning_rate; }
  void set_learning_rate(double learning_rate) { config_.learning_rate = learning_rate; }
  int64_t steps() const { return steps_; }
  int64_t skipped_steps() const { return skipped_steps_; }
  std::string summary() const { return parameters_.summary(); }

  // The velocities by name (none without momentum), and everything back from there.
  OptimizerState state() const;
  void restore(const OptimizerState& saved, int64_t steps);

 private:
  SgdConfig config_;
  OptimizedParameters parameters_;
  std::vector<Array> velocities_;
  int64_t steps_ = 0;
  int64_t skipped_steps_ = 0;
};

}  // namespace gs
