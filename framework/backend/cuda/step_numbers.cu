#include "framework/backend/step_numbers.h"

#include "framework/backend/cuda/launch.h"

namespace gs::backend {
namespace {

__global__ void begin_step_kernel(double* numbers, const double* squares, StepRules rules) {
  advance_step_numbers(numbers, *squares, rules);
}

__global__ void begin_average_kernel(double* numbers, const double* step_numbers, double decay) {
  advance_average(numbers, step_numbers, decay);
}

}  // namespace

void begin_step(Cuda device, Array& numbers, const Array& squares, const StepRules& rules) {
  launch("begin_step", device, {dim3(1), dim3(1)}, begin_step_kernel, numbers.data<double>(),
         squares.data<double>(), rules);
}

void begin_average(Cuda device, Array& numbers, const Array& step_numbers, double decay) {
  launch("begin_average", device, {dim3(1), dim3(1)}, begin_average_kernel, numbers.data<double>(),
         step_numbers.data<double>(), decay);
}

}  // namespace gs::backend
