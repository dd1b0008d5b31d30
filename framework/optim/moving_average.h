#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/backend/optimizer.h"
#include "framework/nn/module.h"
#include "framework/optim/parameter_groups.h"

namespace gs {

// An exponential moving average of all weights of a model (Polyak and Juditsky, "Acceleration of
// stochastic approximation by averaging", 1992), which often computes better than the weights
// themselves. It starts as the weights; update t = 1, 2, ... moves it by
//   average += (1 - d) * (weight - average),  d = min(decay, (1 + t) / (10 + t)),
// so that the first, bad weights are soon forgotten.
class MovingAverage {
 public:
  // `decay` in (0, 1), near 1: the average reaches back about 1 / (1 - decay) updates.
  MovingAverage(const nn::Module& model, double decay);

  // Follows the weights, after a step of the optimizer.
  void update();
  // The same after a step that the device has clipped by itself: where that moved nothing, neither
  // does the average. `step_numbers`: see Adam::numbers.
  void update(const Array& step_numbers);
  int64_t updates() const;

  // Exchanges the values of the model and of the average. Twice changes no bit.
  void swap();

  // What belongs in a checkpoint, whose `parameters` hold the model's weights so far: the average
  // takes their place, and they go to `state` as "<path>/trained_weight".
  void store(std::map<std::string, Array>& parameters, OptimizerState& state) const;
  // The way back, where the model holds the average: it gets the weights of `state`. All or
  // nothing.
  void restore(const OptimizerState& state, int64_t updates);

 private:
  struct Entry {
    std::string path;
    Array weight, average;
  };

  std::vector<backend::MovingAverageParameter> parameters() const;
  void set_updates(int64_t updates);

  double decay_;
  std::vector<Entry> entries_;
  Array numbers_;               // of the device: see backend::begin_average
  int64_t updates_ = 0;         // unless
  bool device_counts_ = false;  // there was an update by the device
};

}  // namespace gs
