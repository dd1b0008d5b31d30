#include "framework/backend/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "framework/backend/cuda/linear_cross_entropy_chunks.h"
#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using backend::CrossEntropyOptions;
using backend::kCrossEntropySums;
using backend::LinearCrossEntropyGradients;
using test::exact_array;
using test::numbers_of;

class LinearCrossEntropyOnCuda : public test::CudaTest {};

constexpr int32_t kIgnored = -7;

Array targets_of(int64_t rows, int64_t classes) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(i % 5 == 3 || classes == 0 ? kIgnored : static_cast<int32_t>(i * 7 % classes));
  return Array::of<int32_t>({rows}, values);
}

struct Problem {
  Array x, weight, bias, targets;
  CrossEntropyOptions options{.ignore_index = kIgnored, .label_smoothing = 0.1};

  static Problem of(int64_t rows, int64_t width, int64_t classes, bool bias) {
    return {exact_array({rows, width}, 1), exact_array({classes, width}, 2),
            bias ? exact_array({classes}, 3) : Array(), targets_of(rows, classes)};
  }
};

struct Result {
  std::vector<double> sums, dx, dweight, dbias;
};

LinearCrossEntropyGradients gradients_of(const Problem& problem, DType dtype, Device device) {
  const auto nan = [&](const Array& like) {  // whatever stood there must not matter
    return like.defined() ? Array::full(like.shape(), NAN, dtype).to(device) : Array();
  };
  return {nan(problem.x), nan(problem.weight), nan(problem.bias)};
}

Result result_of(const Array& sums, const LinearCrossEntropyGradients& gradients) {
  return {numbers_of(sums), numbers_of(gradients.dx), numbers_of(gradients.dweight),
          gradients.dbias.defined() ? numbers_of(gradients.dbias) : std::vector<double>()};
}

// In float64 on the CPU.
Result expected_of(const Problem& problem) {
  LinearCrossEntropyGradients gradients = gradients_of(problem, kFloat64, Device::cpu());
  const Array sums = backend::linear_cross_entropy(Cpu{}, gradients, problem.x, problem.weight,
                                                   problem.bias, problem.targets, problem.options);
  return result_of(sums, gradients);
}

Problem on_cuda(const Problem& problem, DType dtype) {
  const auto move = [&](const Array& array) {
    return array.defined() ? array.to(dtype).to(Device::cuda()) : Array();
  };
  return {move(problem.x), move(problem.weight), move(problem.bias),
          problem.targets.to(Device::cuda()), problem.options};
}

Result result_in_chunks(const Problem& problem, DType dtype, int64_t most_rows,
                        DType gradient_dtype) {
  LinearCrossEntropyGradients gradients = gradients_of(problem, dtype, Device::cuda());
  if (gradient_dtype != dtype) {
    LinearCrossEntropyGradients wide = gradients_of(problem, gradient_dtype, Device::cuda());
    gradients.dweight = wide.dweight;
    gradients.dbias = wide.dbias;
  }
  const Problem moved = on_cuda(problem, dtype);
  const Array sums =
      backend::linear_cross_entropy_in_chunks(Cuda{}, gradients, moved.x, moved.weight, moved.bias,
                                              moved.targets, moved.options, most_rows);
  EXPECT_EQ(sums.shape(), Shape({kCrossEntropySums}));
  return result_of(sums, gradients);
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
}

void expect_alike(const Result& actual, const Result& expected, double tolerance) {
  expect_near(actual.sums, expected.sums, tolerance);
  expect_near(actual.dx, expected.dx, tolerance);
  expect_near(actual.dweight, expected.dweight, tolerance);
  expect_near(actual.dbias, expected.dbias, tolerance);
}

TEST_F(LinearCrossEntropyOnCuda, ChunksOfAnySizeGiveTheSame) {
  for (const auto& [rows, width, classes] : {std::array<int64_t, 3>{13, 5, 7},
                                             {1, 1, 1},
                                             {10, 3, 70},
                                             {9, 0, 4},
                                             {6, 8, 16},
                                             {0, 3, 4}}) {
    for (const bool bias : {false, true}) {
      const Problem problem = Problem::of(rows, width, classes, bias);
      const Result expected = expected_of(problem);
      for (const int64_t most_rows : {1, 3, 5, 1000}) {
        SCOPED_TRACE(Shape({rows, width, classes, bias, most_rows}).text());
        expect_alike(result_in_chunks(problem, kFloat64, most_rows, kFloat64), expected, 1e-13);
        expect_alike(result_in_chunks(problem, kFloat32, most_rows, kFloat32), expected, 1e-5);
      }
    }
  }
}

// Logits are rounded to bfloat16; the gradients of the weights add up in float32.
TEST_F(LinearCrossEntropyOnCuda, Bfloat16) {
  const Problem problem = Problem::of(40, 6, 9, true);
  const Result expected = expected_of(problem);
  const Result one = result_in_chunks(problem, kBFloat16, 1000, kBFloat16);
  EXPECT_EQ(one.sums[backend::kCountSum], expected.sums[backend::kCountSum]);
  for (const int64_t most_rows : {1000, 7}) {
    for (const DType dtype : {kBFloat16, kFloat32}) {
      Result actual = result_in_chunks(problem, kBFloat16, most_rows, dtype);
      actual.sums[backend::kCorrectSum] = expected.sums[backend::kCorrectSum];  // may be rounded
      expect_alike(actual, expected, 0.03);
    }
  }
}

TEST_F(LinearCrossEntropyOnCuda, WritesOnlyWhatIsWanted) {
  const Problem problem = Problem::of(11, 4, 6, true), moved = on_cuda(problem, kFloat64);
  const Result expected = expected_of(problem);
  for (int wanted = 0; wanted < 8; ++wanted) {
    LinearCrossEntropyGradients gradients = gradients_of(problem, kFloat64, Device::cuda());
    if (!(wanted & 1)) gradients.dx = Array();
    if (!(wanted & 2)) gradients.dweight = Array();
    if (!(wanted & 4)) gradients.dbias = Array();
    const Array sums = backend::linear_cross_entropy(Cuda{}, gradients, moved.x, moved.weight,
                                                     moved.bias, moved.targets, moved.options);
    expect_near(numbers_of(sums), expected.sums, 1e-13);
    if (wanted & 1) expect_near(numbers_of(gradients.dx), expected.dx, 1e-13);
    if (wanted & 2) expect_near(numbers_of(gradients.dweight), expected.dweight, 1e-13);
    if (wanted & 4) expect_near(numbers_of(gradients.dbias), expected.dbias, 1e-13);
  }
}

TEST_F(LinearCrossEntropyOnCuda, GivesTheSameBitsEachTime) {
  const Problem problem = Problem::of(30, 5, 11, true);
  const Result first = result_in_chunks(problem, kFloat32, 8, kFloat32);
  for (int i = 0; i < 2; ++i)
    expect_alike(result_in_chunks(problem, kFloat32, 8, kFloat32), first, 0);
}

}  // namespace
}  // namespace gs
