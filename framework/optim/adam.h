#pragma once

#include "framework/optim/parameter_groups.h"

namespace gs {

struct AdamConfig {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  // in [0, 1)
  double epsilon = 1e-8;              // outside of the bias-corrected root
  double weight_decay = 0;
  bool decoupled_decay = true;  // AdamW; else decay is added to the gradient
  std::vector<ParameterGroup> groups = default_groups();
};

// Adam and AdamW. Kingma and Ba, "Adam: a method for stochastic optimization", 2015; Loshchilov and
// Hutter, "Decoupled weight decay regularization", 2019.
class Adam {
 public:
  explicit Adam(const nn::Module& model, AdamConfig config = {});

  // Moves all parameters that have a gradient, and drops the gradients. Where none has one or their
  // scale is not finite, as after a norm that is not finite, nothing moves and the step is counted
  // as skipped.
  void step(const StepOptions& options = {});

  double learning_rate() const { return config_.learning_rate; }
  void set_learning_rate(double learning_rate) { config_.learning_rate = learning_rate; }
  int64_t steps() const { return steps_; }
  int64_t skipped_steps() const { return skipped_steps_; }
  std::string summary() const { return parameters_.summary(); }

  // The moments by name, and everything back from there; all or nothing.
  OptimizerState state() const;
  void restore(const OptimizerState& state, int64_t steps);

 private:
  AdamConfig config_;
  OptimizedParameters parameters_;
  std::vector<Array> first_moments_, second_moments_;
  int64_t steps_ = 0;
  int64_t skipped_steps_ = 0;
};

}  // namespace gs
