#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/random.h"
#include "framework/tensor/tensor.h"

namespace gs::test {

// Numbers in [-2, 2) that do not repeat, the same for the same seed.
inline std::vector<double> random_numbers(int64_t count, uint64_t seed) {
  const RandomStream stream{seed, 77};
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(4.0 * unit_float(stream.words(static_cast<uint64_t>(i))[0]) - 2);
  return values;
}

// The same as a tensor.
template <typename T>
Tensor random_tensor(const Shape& shape, uint64_t seed) {
  const std::vector<double> values = random_numbers(shape.elements(), seed);
  return Tensor::of<T>(shape, std::vector<T>(values.begin(), values.end()));
}

// Expects each element within `tolerance` of the expected one, relative to the larger of 1 and its
// size; NaN where NaN is expected and infinity where infinity is.
inline void expect_near(const Tensor& actual, const std::vector<double>& expected,
                        double tolerance) {
  const std::vector<double> values = actual.values<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(values[i]) : values[i] == expected[i])
          << "element " << i << " is " << values[i] << ", expected " << expected[i];
    } else {
      ASSERT_NEAR(values[i], expected[i], tolerance * std::max(1.0, std::abs(expected[i])))
          << "element " << i;
    }
  }
}

}  // namespace gs::test
