#include "framework/optim/adam.h"

#include <cmath>

#include "framework/backend/optimizer.h"
#include "framework/core/profiler.h"

namespace gs {

Adam::Adam(const nn::Module& model, AdamConfig config)
    : config_(config), parameters_(model, config.groups, config.weight_decay) {
  check(config.beta1 >= 0 && config.beta1 < 1 && config.beta2 >= 0 && config.beta2 < 1,
        "adam: betas must be at least 0 and below 1, got {} and {}", config.beta1, config.beta2);
  check(config.epsilon >= 0, "adam: epsilon must be at least 0, got {}", config.epsilon);
  for (const OptimizedParameter& parameter : parameters_.all()) {
    const Tensor& tensor = parameter.tensor;
    first_moments_.push_back(Array::zeros(tensor.shape(), tensor.dtype(), tensor.device()));
    second_moments_.push_back(Array::zeros(tensor.shape(), tensor.dtype(), tensor.device()));
  }
}

void Adam::step(const StepOptions& options) {
  const OperationTimer timer("adam", Phase::kOther);
  if (!parameters_.can_step(options)) {
    ++skipped_steps_;
    return;
  }
  ++steps_;
  std::vector<backend::AdamParameter> moved;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    const OptimizedParameter& parameter = parameters_.all()[i];
    const Tensor gradient = parameter.tensor.gradient();
    if (!gradient.defined()) continue;
    moved.push_back({.weight = parameter.tensor.value(),
                     .first_moment = first_moments_[i],
                     .second_moment = second_moments_[i],
                     .gradient = gradient.value(),
                     .learning_rate = config_.learning_rate * parameter.learning_rate_scale,
                     .decay = parameter.weight_decay});
  }
  const backend::AdamStep step{
      .beta1 = config_.beta1,
      .beta2 = config_.beta2,
      .epsilon = config_.epsilon,
      .decoupled = config_.decoupled_decay,
      .correction1 = 1 - std::pow(config_.beta1, static_cast<double>(steps_)),
      .correction2 = 1 - std::pow(config_.beta2, static_cast<double>(steps_)),
      .gradient_scale = options.gradient_scale};
  on_device(moved.front().weight.device(), [&](auto on) { backend::adam(on, moved, step); });
  for (backend::AdamParameter& parameter : moved) parameter.weight.mark_changed();
  parameters_.clear_gradients();
}

OptimizerState Adam::state() const {
  OptimizerState state;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    state[parameters_.all()[i].path + "/first_moment"] = first_moments_[i];
    state[parameters_.all()[i].path + "/second_moment"] = second_moments_[i];
  }
  return state;
}

void Adam::restore(const OptimizerState& state, int64_t steps) {
  check(steps >= 0, "optimizer: the step count must be at least 0, got {}", steps);
  std::vector<Array> first, second;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    restore_array(state, parameters_.all()[i].path + "/first_moment",
                  first.emplace_back(Array::like(first_moments_[i])));
    restore_array(state, parameters_.all()[i].path + "/second_moment",
                  second.emplace_back(Array::like(second_moments_[i])));
  }
  first_moments_ = std::move(first);
  second_moments_ = std::move(second);
  steps_ = steps;
}

}  // namespace gs
