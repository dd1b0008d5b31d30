#include "framework/optim/parameter_groups.h"

#include <algorithm>
#include <cmath>

#include "framework/backend/copy.h"

namespace gs {

std::vector<ParameterGroup> default_groups() {
  const auto exempt = [](const nn::NamedParameter& named) { return !named.parameter->decays(); };
  const auto rest = [](const nn::NamedParameter&) { return true; };
  return {{.name = "without decay", .selects = exempt, .weight_decay = 0},
          {.name = "with decay", .selects = rest}};
}

OptimizedParameters::OptimizedParameters(const nn::Module& model,
                                         std::vector<ParameterGroup> groups, double weight_decay)
    : groups_(std::move(groups)) {
  check(weight_decay >= 0, "optimizer: the weight decay must be at least 0, got {}", weight_decay);
  for (const nn::NamedParameter& named : model.parameters()) {
    const auto group = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const ParameterGroup& g) { return g.selects(named); });
    check(
        parameters_.empty() ||
            parameters_.front().tensor.device() == named.parameter->tensor().device(),
        "optimizer: parameters must be on one device, got {} for {} and {} for {}; move the model "
        "as a whole",
        parameters_.empty() ? Device() : parameters_.front().tensor.device(),
        parameters_.empty() ? "" : parameters_.front().path, named.parameter->tensor().device(),
        named.path);
    check(group != groups_.end(),
          "optimizer: no group takes parameter {}; add one that takes the rest", named.path);
    parameters_.push_back({named.path, named.parameter->tensor(), group->learning_rate_scale,
                           group->weight_decay.value_or(weight_decay),
                           static_cast<size_t>(group - groups_.begin())});
  }
}

bool OptimizedParameters::can_step(const StepOptions& options) {
  if (!std::isfinite(options.gradient_scale)) clear_gradients();
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [](const OptimizedParameter& p) { return p.tensor.gradient().defined(); });
}

void OptimizedParameters::clear_gradients() {
  for (OptimizedParameter& parameter : parameters_) parameter.tensor.clear_gradient();
}

std::string OptimizedParameters::summary() const {
  std::string text;
  for (size_t i = 0; i < groups_.size(); ++i) {
    int64_t count = 0, elements = 0;
    double decay = 0;
    for (const OptimizedParameter& parameter : parameters_) {
      if (parameter.group != i) continue;
      ++count;
      elements += parameter.tensor.elements();
      decay = parameter.weight_decay;
    }
    if (count == 0) continue;
    text += fmt::format("{}: {} parameters, {} elements, weight decay {}\n", groups_[i].name, count,
                        elements, decay);
  }
  return text;
}

void restore_arrays(const OptimizerState& saved, OptimizerState targets) {
  for (const auto& [name, target] : targets) {
    const auto found = saved.find(name);
    check(found != saved.end(),
          "optimizer: {} is missing in the saved state; was it another optimizer?", name);
    check(found->second.shape() == target.shape() && found->second.dtype() == target.dtype(),
          "optimizer: {} must be {} {}, got {} {} in the saved state", name, target.shape(),
          target.dtype(), found->second.shape(), found->second.dtype());
  }
  for (auto& named : targets) {
    Array& target = named.second;
    const Array values = saved.at(named.first).to(target.device());
    on_device(target.device(), [&](auto on) { backend::copy(on, target, values); });
    target.mark_changed();
  }
}

}  // namespace gs
