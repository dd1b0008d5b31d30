#include "framework/backend/linear.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using backend::DropoutMask;
using backend::LinearFinish;
using test::exact_array;
using test::numbers_of;

class LinearOnCuda : public test::CudaTest {};

Array on_cuda(const Array& array, DType dtype) {
  return array.defined() ? array.to(dtype).to(Device::cuda()) : Array();
}

struct Layer {
  Array x, weight, bias;
};
Layer layer_of(int64_t rows, int64_t in, int64_t out, bool bias) {
  return {exact_array({rows, in}, 1), exact_array({out, in}, 2),
          bias ? exact_array({out}, 3) : Array()};
}

// In float64 on the CPU.
std::vector<double> expected_of(const Layer& layer, const LinearFinish& finish) {
  Array y = Array::empty({layer.x.shape()[0], layer.weight.shape()[0]}, kFloat64);
  backend::linear(Cpu{}, y, layer.x, layer.weight, layer.bias, finish);
  return y.values<double>();
}

Array result_of(const Layer& layer, const LinearFinish& finish, DType dtype) {
  Array y =
      Array::full({layer.x.shape()[0], layer.weight.shape()[0]}, NAN, dtype).to(Device::cuda());
  backend::linear(Cuda{}, y, on_cuda(layer.x, dtype), on_cuda(layer.weight, dtype),
                  on_cuda(layer.bias, dtype), finish);
  return y;
}

double relative_error(DType dtype) {
  return dtype == kFloat64 ? 1e-14 : dtype == kFloat32 ? 1e-6 : 0x1p-7;
}

void expect_as_on_cpu(const Layer& layer, const LinearFinish& finish, DType dtype) {
  const std::vector<double> expected = expected_of(layer, finish);
  const std::vector<double> actual = numbers_of(result_of(layer, finish, dtype));
  ASSERT_EQ(actual.size(), expected.size());
  const double size = 2 + 2 * static_cast<double>(layer.x.shape()[1]);
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], relative_error(dtype) * size) << name_of(dtype) << " " << i;
}

TEST_F(LinearOnCuda, EveryFinishInOddShapes) {
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{1, 1, 1},
                                      {3, 5, 7},
                                      {17, 33, 5},
                                      {6, 8, 16},
                                      {2, 3, 130},
                                      {4, 0, 3},
                                      {0, 3, 4},
                                      {3, 4, 0}}) {
    for (int form = 0; form < 8; ++form) {
      SCOPED_TRACE(Shape({rows, in, out}).text() + " form " + std::to_string(form));
      LinearFinish finish{.relu = (form & 2) != 0, .dropout = {}};
      if (form & 4) finish.dropout = DropoutMask::of(0.4, {.seed = 7, .number = 3});
      for (const DType dtype : {kFloat32, kFloat64, kBFloat16})
        expect_as_on_cpu(layer_of(rows, in, out, form & 1), finish, dtype);
    }
  }
}

TEST_F(LinearOnCuda, DropsTheSameElementsAsTheCpu) {
  Layer layer = layer_of(13, 4, 11, false);
  layer.bias = Array::full({11}, 100, kFloat64);  // no product is 0
  const LinearFinish finish{.relu = true,
                            .dropout = DropoutMask::of(0.5, {.seed = 1, .number = 2})};
  const std::vector<double> expected = expected_of(layer, finish);
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    const std::vector<double> actual = numbers_of(result_of(layer, finish, dtype));
    for (size_t i = 0; i < actual.size(); ++i) EXPECT_EQ(actual[i] == 0, expected[i] == 0) << i;
  }
  const LinearFinish all{.relu = false, .dropout = DropoutMask::of(1, {})};
  EXPECT_EQ(numbers_of(result_of(layer, all, kFloat32)), std::vector<double>(13 * 11, 0));
}

TEST_F(LinearOnCuda, NanPassesReluAndInfinityStays) {
  Layer layer = layer_of(3, 2, 5, true);
  layer.x.data<double>()[2] = NAN;  // row 1
  layer.bias.data<double>()[4] = INFINITY;
  layer.bias.data<double>()[3] = -INFINITY;
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    const std::vector<double> y =
        numbers_of(result_of(layer, {.relu = true, .dropout = {}}, dtype));
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / 5 == 1) << i;
      if (i / 5 == 1) continue;
      if (i % 5 == 4) {
        EXPECT_EQ(y[i], INFINITY) << i;
      } else {
        EXPECT_GE(y[i], 0) << i;
      }
      if (i % 5 == 3) {
        EXPECT_EQ(y[i], 0) << i;
      }
    }
  }
}

TEST_F(LinearOnCuda, GivesTheSameBitsEachTime) {
  const Layer layer = layer_of(37, 65, 19, true);
  const LinearFinish finish{.relu = true, .dropout = DropoutMask::of(0.1, {.seed = 5})};
  const std::vector<double> first = numbers_of(result_of(layer, finish, kFloat32));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(numbers_of(result_of(layer, finish, kFloat32)), first);
}

TEST_F(LinearOnCuda, ReluBackwardAsOnTheCpu) {
  for (const int64_t count : {0, 1, 3, 4, 5, 255, 256, 257, 1025}) {
    Array y = exact_array({count}, 1);
    const Array dy = exact_array({count}, 2);
    for (int64_t i = 0; i < count; i += 3) y.data<double>()[i] = 0;
    if (count > 4) y.data<double>()[4] = NAN;
    Array expected = Array::like(y);
    backend::linear_relu_backward(Cpu{}, expected, dy, y, 1.25);
    for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
      Array actual = on_cuda(Array::full({count}, NAN, kFloat64), dtype);
      backend::linear_relu_backward(Cuda{}, actual, on_cuda(dy, dtype), on_cuda(y, dtype), 1.25);
      const std::vector<double> values = numbers_of(actual);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], expected.values<double>()[i], dtype == kBFloat16 ? 0x1p-8 : 0) << i;
    }
  }
}

}  // namespace
}  // namespace gs
