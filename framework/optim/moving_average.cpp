#include "framework/optim/moving_average.h"

#include "framework/backend/copy.h"
#include "framework/backend/step_numbers.h"
#include "framework/backend/store.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

constexpr const char* kTrainedWeight = "/trained_weight";

void copy_values(Array& target, const Array& source) {
  on_device(target.device(), [&](auto on) { backend::copy(on, target, source); });
  target.mark_changed();
}

}  // namespace

MovingAverage::MovingAverage(const nn::Module& model, double decay) : decay_(decay) {
  check(decay > 0 && decay < 1, "moving average: the decay must be above 0 and below 1, got {}",
        decay);
  for (const nn::NamedParameter& named : model.parameters()) {
    const Array& weight = named.parameter->tensor().value();
    entries_.push_back({.path = named.path, .weight = weight, .average = weight.clone()});
  }
  const Device device = entries_.empty() ? Device::cpu() : entries_.front().weight.device();
  numbers_ = Array::zeros({2}, kFloat64, device);
}

void MovingAverage::update() {
  const OperationTimer timer("moving_average", Phase::kOther);
  set_updates(updates() + 1);
  const double decay = backend::average_decay(decay_, static_cast<double>(updates_));
  std::vector<backend::MovingAverageParameter> moved = parameters();
  on_device(numbers_.device(), [&](auto on) { backend::moving_average(on, moved, decay); });
}

void MovingAverage::update(const Array& step_numbers) {
  const OperationTimer timer("moving_average", Phase::kOther);
  device_counts_ = true;
  std::vector<backend::MovingAverageParameter> moved = parameters();
  on_device(numbers_.device(), [&](auto on) {
    backend::begin_average(on, numbers_, step_numbers, decay_);
    backend::moving_average(on, moved, numbers_);
  });
}

std::vector<backend::MovingAverageParameter> MovingAverage::parameters() const {
  std::vector<backend::MovingAverageParameter> parameters;
  for (const Entry& entry : entries_) {
    parameters.push_back({.average = entry.average, .weight = entry.weight});
    parameters.back().average.mark_changed();
  }
  return parameters;
}

int64_t MovingAverage::updates() const {
  return device_counts_ ? static_cast<int64_t>(numbers_.values<double>()[0]) : updates_;
}

void MovingAverage::set_updates(int64_t updates) {
  updates_ = updates;
  const auto number = static_cast<double>(updates);
  on_device(numbers_.device(),
            [&](auto on) { backend::store(on, numbers_.raw(), &number, sizeof(number)); });
}

void MovingAverage::swap() {
  for (Entry& entry : entries_) {
    const Array weight = entry.weight.clone();
    copy_values(entry.weight, entry.average);
    copy_values(entry.average, weight);
  }
}

void MovingAverage::store(std::map<std::string, Array>& parameters, OptimizerState& state) const {
  for (const Entry& entry : entries_) {
    state[entry.path + kTrainedWeight] = entry.weight;
    parameters[entry.path] = entry.average;
  }
}

void MovingAverage::restore(const OptimizerState& state, int64_t updates) {
  check(updates >= 0, "moving average: the number of updates must not be negative, got {}",
        updates);
  OptimizerState averages;  // which then change places with the weights
  for (const Entry& entry : entries_) averages[entry.path + kTrainedWeight] = entry.average;
  restore_arrays(state, std::move(averages));
  swap();
  set_updates(updates);
}

}  // namespace gs
