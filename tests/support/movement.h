#pragma once

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"

namespace gs::test {

// The numbers `start`, start + 1, ...: their place can be read from their value.
inline Tensor counted(const Shape& shape, DType dtype = kFloat64, double start = 0) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), start);
  return Tensor(Array::of<double>(shape, values).to(dtype));
}

// An operation that moves elements: each element of the result is one element of the inputs, for
// every type alike. Counted inputs must give `expected`, and check_operation must be content.
inline void expect_movement(const Operation& operation, const std::vector<Shape>& shapes,
                            const Shape& shape, const std::vector<double>& expected) {
  for (const DType dtype : {kFloat32, kFloat64, kInt32}) {
    std::vector<Tensor> inputs;
    double start = 0;
    for (const Shape& input : shapes) {
      inputs.push_back(counted(input, dtype, start));
      start += static_cast<double>(input.elements());
    }
    const Tensor y = operation(inputs);
    EXPECT_EQ(y.shape(), shape);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.values<double>(), expected);
  }
  std::vector<Tensor> inputs;
  for (const Shape& input : shapes)
    inputs.push_back(random_tensor<double>(input, inputs.size() + 1));
  check_operation("movement of " + shape.text(), operation, inputs);
}

}  // namespace gs::test
