#pragma once

#include <limits>

#include "framework/backend/optimizer.h"
#include "framework/backend/step_numbers.h"
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

  // The same with gradients clipped to a joint norm, which the device does by itself: it is not
  // waited for, and the step may be recorded (see CapturedSteps). A norm that is not finite skips
  // the step, and with `halts` all that follow, which leaves everything as before it.
  struct ClippedStep {
    double maximum_norm = std::numeric_limits<double>::infinity();
    bool halts = false;
  };
  void clipped_step(const ClippedStep& options);
  // What the device knows of its clipped steps: see backend::StepNumber.
  const Array& numbers() const { return numbers_; }
  // After a step that halted: the next one moves again.
  void resume();

  double learning_rate() const { return config_.learning_rate; }
  void set_learning_rate(double learning_rate);
  int64_t steps() const { return count(backend::kSteps); }
  int64_t skipped_steps() const { return count(backend::kSkippedSteps); }
  std::string summary() const { return parameters_.summary(); }

  // The moments by name, and everything back from there; all or nothing.
  OptimizerState state() const;
  void restore(const OptimizerState& saved, int64_t steps);

 private:
  std::vector<backend::AdamParameter> parameters_to_move(double learning_rate) const;
  void finish(std::vector<backend::AdamParameter>& moved);
  int64_t count(backend::StepNumber which) const;
  void set_number(backend::StepNumber which, double value);

  AdamConfig config_;
  OptimizedParameters parameters_;
  std::vector<Array> first_moments_, second_moments_;
  Array numbers_;
  int64_t steps_ = 0;
  int64_t skipped_steps_ = 0;
  bool device_counts_ = false;  // steps, once there was a clipped one
};

}  // namespace gs
