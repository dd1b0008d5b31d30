#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "framework/backend/array.h"
#include "framework/core/random.h"

namespace gs::test {

// Uniform numbers in [-2, 2).
inline Array random_array(const Shape& shape, uint64_t seed) {
  const RandomStream stream{seed, 0};
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 4 * static_cast<double>(unit_float(stream.words(i / 4)[i % 4])) - 2;
  return Array::of(shape, values);
}

// Multiples of 1/64 in [-1, 1], which are exact in bfloat16.
inline Array exact_array(const Shape& shape, int seed) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::round(64 * std::sin(static_cast<double>(i * 37) + seed * 101.0)) / 64;
  return Array::of<double>(shape, values);
}

inline Array random_indices(const Shape& shape, int64_t size, uint64_t seed) {
  const RandomStream stream{seed, 1};
  std::vector<int32_t> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<int32_t>(stream.words(i / 4)[i % 4] % static_cast<uint64_t>(size));
  return Array::of(shape, values);
}

// Where and in which type a kernel runs.
struct Place {
  Device device;
  DType dtype;
  Array empty(const Shape& shape) const { return Array::empty(shape, dtype, device); }
  Array empty(const Shape& shape, DType type) const { return Array::empty(shape, type, device); }
};

// `value` as the numbers it holds, floating or not.
inline std::vector<double> numbers_of(const Array& value) {
  return value.to(Device::cpu()).to(kFloat64).values<double>();
}

inline void expect_near(const Array& actual, const Array& expected, double tolerance,
                        const std::string& name) {
  ASSERT_EQ(actual.shape(), expected.shape()) << name;
  const std::vector<double> a = numbers_of(actual), b = numbers_of(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    // A share of infinity would allow any number.
    ASSERT_TRUE(std::isfinite(b[i]) && std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))
        << name << ", element " << i << ": " << a[i] << ", on the CPU " << b[i];
  }
}

// Runs run(tag, place, inputs) -> vector<Array> on the CPU and on the first CUDA device, in all
// floating types, and expects the same from both. Floating inputs are given in float64; bfloat16 is
// held against what the CPU makes of the same numbers in float32.
template <typename Run>
void expect_same_on_both(const std::string& name, const std::vector<Array>& inputs, Run run,
                         double tolerance = 1e-5) {
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16}) {
    std::vector<Array> here, there;
    for (const Array& input : inputs) {
      const bool floating = input.defined() && input.dtype() == kFloat64;
      const Array typed = floating ? input.to(dtype) : input;
      here.push_back(floating && dtype == kBFloat16 ? typed.to(kFloat32) : typed);
      there.push_back(typed.defined() ? typed.to(Device::cuda()) : typed);
    }
    const DType exact = dtype == kBFloat16 ? kFloat32 : dtype;
    const std::vector<Array> expected = run(Cpu{}, Place{Device::cpu(), exact}, here);
    const std::vector<Array> actual = run(Cuda{}, Place{Device::cuda(), dtype}, there);
    const double allowed = dtype == kFloat64   ? 1e-12
                           : dtype == kFloat32 ? tolerance
                                               : std::max(0.01, tolerance);
    for (size_t i = 0; i < expected.size(); ++i)
      expect_near(actual[i], expected[i], allowed,
                  fmt::format("{}, {}, result {}", name, dtype, i));
  }
}

}  // namespace gs::test
