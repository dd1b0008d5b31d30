#include "framework/backend/step_numbers.h"

namespace gs::backend {

void begin_step(Cpu, Array& numbers, const Array& squares, const StepRules& rules) {
  advance_step_numbers(numbers.data<double>(), squares.data<double>()[0], rules);
}

void begin_average(Cpu, Array& numbers, const Array& step_numbers, double decay) {
  advance_average(numbers.data<double>(), step_numbers.data<double>(), decay);
}

}  // namespace gs::backend
