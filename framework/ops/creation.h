#pragma once

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs {

// Tensors from nothing: zeros({2, 3}, {.dtype = kFloat64}). None of them needs a gradient until
// set_needs_grad().
struct CreationOptions {
  DType dtype = kFloat32;
  Device device = Device::cpu();
};

Tensor zeros(const Shape& shape, CreationOptions options = {});
Tensor ones(const Shape& shape, CreationOptions options = {});
Tensor full(const Shape& shape, double value, CreationOptions options = {});
// Of the shape, type and device of x.
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);

// start, start + step, ... up to but without `end`; none where `end` does not lie ahead. int32
// unless the options say otherwise; numbers that int32 cannot hold exactly are refused.
Tensor arange(double start, double end, double step = 1,
              CreationOptions options = {.dtype = kInt32});
// 0, 1, ..., count - 1.
Tensor arange(int64_t count, CreationOptions options = {.dtype = kInt32});

// Random numbers: uniform in [0, 1), normal with mean 0 and deviation 1, or int32 integers in
// [low, high). A call draws one stream of the generator; the numbers do not depend on the number
// of threads or the device, and float64 draws the numbers of float32.
Tensor rand(const Shape& shape, CreationOptions options = {},
            Generator& generator = default_generator());
Tensor randn(const Shape& shape, CreationOptions options = {},
             Generator& generator = default_generator());
Tensor randint(int64_t low, int64_t high, const Shape& shape, Device device = Device::cpu(),
               Generator& generator = default_generator());

// 1 at the class that int32 `indices` name and 0 elsewhere: (...) -> (..., classes). Indices
// outside 0..classes - 1 are refused.
Tensor one_hot(const Tensor& indices, int64_t classes, DType dtype = kFloat32);

}  // namespace gs
