#include "framework/optim/adam.h"

#include <cmath>

#include "framework/backend/store.h"
#include "framework/core/profiler.h"

namespace gs {

Adam::Adam(const nn::Module& model, AdamConfig config)
    : config_(config), parameters_(model, config.groups, config.weight_decay) {
  check(config.beta1 >= 0 && config.beta1 < 1 && config.beta2 >= 0 && config.beta2 < 1,
        "adam: betas must be at least 0 and below 1, got {} and {}", config.beta1, config.beta2);
  check(config.epsilon >= 0, "adam: epsilon must be at least 0, got {}", config.epsilon);
  Device device = Device::cpu();
  for (const OptimizedParameter& parameter : parameters_.all()) {
    const Tensor& tensor = parameter.tensor;
    device = tensor.device();
    first_moments_.push_back(Array::zeros(tensor.shape(), tensor.dtype(), tensor.device()));
    second_moments_.push_back(Array::zeros(tensor.shape(), tensor.dtype(), tensor.device()));
  }
  numbers_ = Array::zeros({backend::kStepNumbers}, kFloat64, device);
  set_number(backend::kLearningRate, config_.learning_rate);
}

std::vector<backend::AdamParameter> Adam::parameters_to_move(double learning_rate) const {
  std::vector<backend::AdamParameter> moved;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    const OptimizedParameter& parameter = parameters_.all()[i];
    const Tensor gradient = parameter.tensor.gradient();
    if (!gradient.defined()) continue;
    moved.push_back({.weight = parameter.tensor.value(),
                     .first_moment = first_moments_[i],
                     .second_moment = second_moments_[i],
                     .gradient = gradient.value(),
                     .learning_rate = learning_rate * parameter.learning_rate_scale,
                     .decay = parameter.weight_decay});
  }
  return moved;
}

void Adam::finish(std::vector<backend::AdamParameter>& moved) {
  for (backend::AdamParameter& parameter : moved) parameter.weight.mark_changed();
  parameters_.clear_gradients();
}

void Adam::step(const StepOptions& options) {
  const OperationTimer timer("adam", Phase::kOther);
  if (!parameters_.can_step(options)) {
    skipped_steps_ = skipped_steps() + 1;
    set_number(backend::kSkippedSteps, static_cast<double>(skipped_steps_));
    return;
  }
  steps_ = steps() + 1;
  set_number(backend::kSteps, static_cast<double>(steps_));
  std::vector<backend::AdamParameter> moved = parameters_to_move(config_.learning_rate);
  const backend::AdamStep step{
      .beta1 = config_.beta1,
      .beta2 = config_.beta2,
      .epsilon = config_.epsilon,
      .decoupled = config_.decoupled_decay,
      .correction1 = 1 - std::pow(config_.beta1, static_cast<double>(steps_)),
      .correction2 = 1 - std::pow(config_.beta2, static_cast<double>(steps_)),
      .gradient_scale = options.gradient_scale};
  on_device(numbers_.device(), [&](auto on) { backend::adam(on, moved, step); });
  finish(moved);
}

void Adam::clipped_step(const ClippedStep& options) {
  const OperationTimer timer("adam", Phase::kOther);
  check(options.maximum_norm > 0, "adam: the maximum norm must be above 0, got {}",
        options.maximum_norm);
  std::vector<backend::AdamParameter> moved = parameters_to_move(1);
  if (moved.empty()) return step();
  device_counts_ = true;
  std::vector<Array> gradients;
  for (const backend::AdamParameter& parameter : moved) gradients.push_back(parameter.gradient);
  const backend::AdamStep step{.beta1 = config_.beta1,
                               .beta2 = config_.beta2,
                               .epsilon = config_.epsilon,
                               .decoupled = config_.decoupled_decay,
                               .numbers = numbers_};
  on_device(numbers_.device(), [&](auto on) {
    backend::begin_step(on, numbers_, backend::sum_of_squares(on, gradients),
                        {.maximum_norm = options.maximum_norm,
                         .beta1 = config_.beta1,
                         .beta2 = config_.beta2,
                         .halts = options.halts});
    backend::adam(on, moved, step);
  });
  finish(moved);
}

void Adam::resume() { set_number(backend::kHalted, 0); }

void Adam::set_learning_rate(double learning_rate) {
  config_.learning_rate = learning_rate;
  set_number(backend::kLearningRate, learning_rate);
}

int64_t Adam::count(backend::StepNumber which) const {
  if (!device_counts_) return which == backend::kSteps ? steps_ : skipped_steps_;
  return static_cast<int64_t>(numbers_.values<double>()[static_cast<size_t>(which)]);
}

void Adam::set_number(backend::StepNumber which, double value) {
  on_device(numbers_.device(), [&](auto on) {
    backend::store(on, static_cast<double*>(numbers_.raw()) + which, &value, sizeof(value));
  });
}

OptimizerState Adam::state() const {
  OptimizerState state;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    state[parameters_.all()[i].path + "/first_moment"] = first_moments_[i];
    state[parameters_.all()[i].path + "/second_moment"] = second_moments_[i];
  }
  return state;
}

void Adam::restore(const OptimizerState& saved, int64_t steps) {
  check(steps >= 0, "optimizer: the step count must be at least 0, got {}", steps);
  restore_arrays(saved, state());
  steps_ = steps;
  set_number(backend::kSteps, static_cast<double>(steps));
}

}  // namespace gs
