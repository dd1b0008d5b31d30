#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// One step of Adam for one parameter, in place; `decoupled` moves the weight by decay alone, apart
// from the gradient (AdamW), else decay is added to the gradient.
struct AdamStep {
  double learning_rate, beta1, beta2, epsilon, decay;
  bool decoupled;
  double correction1, correction2;  // 1 - beta^step
};
void adam(Cpu, Array& weight, Array& first_moment, Array& second_moment, const Array& gradient,
          const AdamStep& step);

// One step of stochastic gradient descent, in place. `velocity` starts at zeros, and is undefined
// without momentum.
struct SgdStep {
  double learning_rate, momentum, decay;
  bool nesterov;
};
void sgd(Cpu, Array& weight, Array& velocity, const Array& gradient, const SgdStep& step);

// The sum of the squares of all elements, in double, the same for any number of threads.
double sum_of_squares(Cpu, const Array& x);

}  // namespace gs::backend
