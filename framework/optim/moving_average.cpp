#include "framework/optim/moving_average.h"

#include <algorithm>

#include "framework/backend/copy.h"
#include "framework/backend/optimizer.h"
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
}

void MovingAverage::update() {
  const OperationTimer timer("moving_average", Phase::kOther);
  ++updates_;
  const auto t = static_cast<double>(updates_);
  const double decay = std::min(decay_, (1 + t) / (10 + t));
  std::vector<backend::MovingAverageParameter> parameters;
  for (const Entry& entry : entries_)
    parameters.push_back({.average = entry.average, .weight = entry.weight});
  if (parameters.empty()) return;
  on_device(parameters.front().average.device(),
            [&](auto on) { backend::moving_average(on, parameters, decay); });
  for (backend::MovingAverageParameter& parameter : parameters) parameter.average.mark_changed();
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
  std::vector<Array> trained;
  for (const Entry& entry : entries_)
    restore_array(state, entry.path + kTrainedWeight,
                  trained.emplace_back(Array::like(entry.weight)));
  for (size_t i = 0; i < entries_.size(); ++i) {
    copy_values(entries_[i].average, entries_[i].weight);
    copy_values(entries_[i].weight, trained[i]);
  }
  updates_ = updates;
}

}  // namespace gs
