#pragma once

#include <cmath>
#include <limits>

#include "framework/backend/array.h"

namespace gs::backend {

// The places of an optimizer's numbers in an array that the device keeps by itself from step to
// step, float64 (kStepNumbers), so that nothing has to wait for it and recorded steps can go on.
enum StepNumber : int64_t {
  kLearningRate,   // set from outside
  kSteps,          // those that moved anything
  kSkippedSteps,   // those that did not, but for the next ones
  kHalted,         // those that halted; not 0: none moves anything until it is set back
  kGradientNorm,   // of the last step, before clipping
  kGradientScale,  // what multiplies its gradients; not a number where it moves nothing
  kCorrection1,    // 1 - beta1^kSteps
  kCorrection2,
  kStepNumbers
};

struct StepRules {
  double maximum_norm = std::numeric_limits<double>::infinity();
  double beta1 = 0, beta2 = 0;
  bool halts = false;  // at a norm that is not finite, which else skips one step
};

// What the numbers become in a step whose gradients have this sum of squares.
constexpr void advance_step_numbers(double* numbers, double squares, const StepRules& rules) {
  const double norm = std::sqrt(squares);
  const bool moves = norm - norm == 0 && numbers[kHalted] == 0;
  numbers[kGradientNorm] = norm;
  numbers[moves ? kSteps : rules.halts ? kHalted : kSkippedSteps] += 1;
  const bool clips = norm > rules.maximum_norm;
  numbers[kGradientScale] = !moves  ? std::numeric_limits<double>::quiet_NaN()
                            : clips ? rules.maximum_norm / (norm + 1e-6)
                                    : 1;
  numbers[kCorrection1] = 1 - std::pow(rules.beta1, numbers[kSteps]);
  numbers[kCorrection2] = 1 - std::pow(rules.beta2, numbers[kSteps]);
}

// The same on the device; `squares` as sum_of_squares gives it.
void begin_step(Cpu, Array& numbers, const Array& squares, const StepRules& rules);
void begin_step(Cuda, Array& numbers, const Array& squares, const StepRules& rules);

// The decay of a moving average's next update, the t-th: slow at first, so that the first, bad
// weights are soon forgotten.
constexpr double average_decay(double decay, double t) {
  return decay < (1 + t) / (10 + t) ? decay : (1 + t) / (10 + t);
}

// numbers, float64 (2): the updates of a moving average so far, and the decay of this one, which is
// 1 after a step that moved nothing and does not count.
void begin_average(Cpu, Array& numbers, const Array& step_numbers, double decay);
void begin_average(Cuda, Array& numbers, const Array& step_numbers, double decay);

constexpr void advance_average(double* numbers, const double* step_numbers, double decay) {
  const bool moved = step_numbers[kGradientScale] - step_numbers[kGradientScale] == 0;
  if (moved) numbers[0] += 1;
  numbers[1] = moved ? average_decay(decay, numbers[0]) : 1;
}

}  // namespace gs::backend
