#include "framework/optim/sgd.h"

#include "framework/backend/optimizer.h"
#include "framework/core/profiler.h"

namespace gs {

Sgd::Sgd(const nn::Module& model, SgdConfig config)
    : config_(config), parameters_(model, config.groups, config.weight_decay) {
  check(config.momentum >= 0, "sgd: the momentum must be at least 0, got {}", config.momentum);
  check(!config.nesterov || config.momentum > 0, "sgd: Nesterov's form needs a momentum above 0");
  for (const OptimizedParameter& parameter : parameters_.all()) {
    const Tensor& tensor = parameter.tensor;
    velocities_.push_back(config.momentum == 0
                              ? Array()
                              : Array::zeros(tensor.shape(), tensor.dtype(), tensor.device()));
  }
}

void Sgd::step(const StepOptions& options) {
  const OperationTimer timer("sgd", Phase::kOther);
  if (!parameters_.can_step(options)) {
    ++skipped_steps_;
    return;
  }
  ++steps_;
  std::vector<backend::SgdParameter> moved;
  for (size_t i = 0; i < parameters_.all().size(); ++i) {
    const OptimizedParameter& parameter = parameters_.all()[i];
    const Tensor gradient = parameter.tensor.gradient();
    if (!gradient.defined()) continue;
    moved.push_back({.weight = parameter.tensor.value(),
                     .velocity = velocities_[i],
                     .gradient = gradient.value(),
                     .learning_rate = config_.learning_rate * parameter.learning_rate_scale,
                     .decay = parameter.weight_decay});
  }
  const backend::SgdStep step{.momentum = config_.momentum,
                              .nesterov = config_.nesterov,
                              .gradient_scale = options.gradient_scale};
  on_device(moved.front().weight.device(), [&](auto on) { backend::sgd(on, moved, step); });
  for (backend::SgdParameter& parameter : moved) parameter.weight.mark_changed();
  parameters_.clear_gradients();
}

OptimizerState Sgd::state() const {
  OptimizerState state;
  for (size_t i = 0; i < velocities_.size(); ++i) {
    if (velocities_[i].defined()) state[parameters_.all()[i].path + "/velocity"] = velocities_[i];
  }
  return state;
}

void Sgd::restore(const OptimizerState& saved, int64_t steps) {
  check(steps >= 0, "optimizer: the step count must be at least 0, got {}", steps);
  restore_arrays(saved, state());
  steps_ = steps;
}

}  // namespace gs
