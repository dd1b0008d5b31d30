#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Losses of single elements, of x and target of one shape and type. The sums are taken in double
// precision, in an order that depends on the size alone, and stay on the device as float64 scalars.

// The sum of (x - target)^2.
Array mse_loss(Cpu, const Array& x, const Array& target);
Array mse_loss(Cuda, const Array& x, const Array& target);
// dx = dloss * 2 (x - target), dloss of one element.
void mse_loss_backward(Cpu, Array& dx, const Array& dloss, const Array& x, const Array& target);
void mse_loss_backward(Cuda, Array& dx, const Array& dloss, const Array& x, const Array& target);

// The sum of -target log(sigmoid(x)) - (1 - target) log(1 - sigmoid(x)).
Array binary_cross_entropy(Cpu, const Array& x, const Array& target);
Array binary_cross_entropy(Cuda, const Array& x, const Array& target);
// dx = dloss * (sigmoid(x) - target)
void binary_cross_entropy_backward(Cpu, Array& dx, const Array& dloss, const Array& x,
                                   const Array& target);
void binary_cross_entropy_backward(Cuda, Array& dx, const Array& dloss, const Array& x,
                                   const Array& target);
// dtarget = -dloss * x
void binary_cross_entropy_target_backward(Cpu, Array& dtarget, const Array& dloss, const Array& x);
void binary_cross_entropy_target_backward(Cuda, Array& dtarget, const Array& dloss, const Array& x);

}  // namespace gs::backend
