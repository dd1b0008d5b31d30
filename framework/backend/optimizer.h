#pragma once

#include <span>

#include "framework/backend/array.h"

namespace gs::backend {

// One parameter in a step of Adam. The weight and the moments, zeros at the start, change in place.
struct AdamParameter {
  Array weight, first_moment, second_moment, gradient;
  double learning_rate, decay;
};

// One step for all parameters. `decoupled` moves weights by decay alone, apart from the gradient
// (AdamW), else decay is added to the gradient. Gradients are multiplied by their scale as they are
// read.
struct AdamStep {
  double beta1, beta2, epsilon;
  bool decoupled;
  double correction1 = 0, correction2 = 0;  // 1 - beta^step
  double gradient_scale = 1;
  // Where defined: see step_numbers.h. They hold the corrections and the scale, with which nothing
  // may move, and a learning rate that multiplies those of the parameters.
  Array numbers = {};
};
void adam(Cpu, std::span<AdamParameter> parameters, const AdamStep& step);
void adam(Cuda, std::span<AdamParameter> parameters, const AdamStep& step);

// The same for stochastic gradient descent; the velocity is undefined without momentum.
struct SgdParameter {
  Array weight, velocity, gradient;
  double learning_rate, decay;
};

struct SgdStep {
  double momentum;
  bool nesterov;
  double gradient_scale = 1;
};
void sgd(Cpu, std::span<SgdParameter> parameters, const SgdStep& step);
void sgd(Cuda, std::span<SgdParameter> parameters, const SgdStep& step);

// average += (1 - decay) * (weight - average), element by element; the average changes in place.
struct MovingAverageParameter {
  Array average, weight;
};
void moving_average(Cpu, std::span<MovingAverageParameter> parameters, double decay);
void moving_average(Cuda, std::span<MovingAverageParameter> parameters, double decay);
// The same with a decay on the device, the second of two float64; see begin_average.
void moving_average(Cpu, std::span<MovingAverageParameter> parameters, const Array& numbers);
void moving_average(Cuda, std::span<MovingAverageParameter> parameters, const Array& numbers);

// The sum of the squares of all elements of all arrays, a float64 on their device, which is not
// waited for; the same for any number of threads.
Array sum_of_squares(Cpu, std::span<const Array> arrays);
Array sum_of_squares(Cuda, std::span<const Array> arrays);

}  // namespace gs::backend
