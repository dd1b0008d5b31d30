#pragma once

#include <map>
#include <string>
#include <vector>

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
  int64_t updates() const { return updates_; }

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

  double decay_;
  std::vector<Entry> entries_;
  int64_t updates_ = 0;
};

}  // namespace gs
