#pragma once

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs::nn {

// Initial values of parameters, float32. A weight of shape (out, in) has fan-in `in` and fan-out
// `out`; with more dimensions the inner ones count towards both. Each call draws one stream.

// Uniform within sqrt(6 / (fan_in + fan_out)). Glorot and Bengio, 2010.
Tensor xavier_uniform(const Shape& shape, Generator& generator = default_generator());
// Normal, variance 2 / (fan_in + fan_out).
Tensor xavier_normal(const Shape& shape, Generator& generator = default_generator());
// Uniform within sqrt(6 / fan_in), for ReLU. He et al., 2015.
Tensor kaiming_uniform(const Shape& shape, Generator& generator = default_generator());
// Normal, variance 2 / fan_in, for ReLU.
Tensor kaiming_normal(const Shape& shape, Generator& generator = default_generator());
Tensor uniform(const Shape& shape, double low, double high,
               Generator& generator = default_generator());
Tensor normal(const Shape& shape, double mean, double deviation,
              Generator& generator = default_generator());
Tensor constant(const Shape& shape, double value);

// While one lives, this thread draws no initial values and leaves those above, but for constant,
// as they are: for a model whose parameters are loaded next.
class NoInitialValues {
 public:
  NoInitialValues();
  ~NoInitialValues();
  NoInitialValues(const NoInitialValues&) = delete;
  NoInitialValues& operator=(const NoInitialValues&) = delete;

 private:
  bool before_;
};

}  // namespace gs::nn
