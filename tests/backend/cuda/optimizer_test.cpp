#include "framework/backend/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

namespace gs {
namespace {

using backend::AdamParameter;
using backend::AdamStep;
using backend::MovingAverageParameter;
using backend::SgdParameter;
using backend::SgdStep;

class OptimizerOnCuda : public test::CudaTest {};

Array numbers(int64_t count, int seed, DType dtype) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i * 37) + seed * 101.0);
  return Array::of<double>({count}, values).to(dtype);
}

// A piece of a launch has 4096 elements.
const std::vector<int64_t> kSizes = {0, 1, 3, 4, 5, 255, 256, 1023, 1025, 4095, 4096, 4097, 9001};

// Copies on the device; an undefined array stays one.
Array on_cuda(const Array& array) { return array.defined() ? array.to(Device::cuda()) : Array(); }

void expect_alike(const Array& actual, const Array& expected) {
  test::expect_near(actual, expected, expected.dtype() == kFloat64 ? 1e-13 : 2e-6, "step");
}

// Types and learning rates that change between neighbours, and more arrays than one launch takes.
std::vector<AdamParameter> adam_parameters() {
  std::vector<AdamParameter> all;
  const auto add = [&](int64_t size, DType dtype, double rate) {
    const int seed = static_cast<int>(all.size());
    all.push_back({.weight = numbers(size, seed, dtype),
                   .first_moment = Array::zeros({size}, dtype),
                   .second_moment = Array::zeros({size}, dtype),
                   .gradient = numbers(size, seed + 1, dtype),
                   .learning_rate = rate,
                   .decay = seed % 3 * 0.1});
  };
  for (const int64_t size : kSizes) add(size, kFloat32, 0.01);
  for (const int64_t size : kSizes) add(size, kFloat64, 0.01);
  for (int i = 0; i < 5; ++i) add(7, kFloat64, 0.01 * i);
  for (int i = 0; i < 150; ++i) add(i % 9, kFloat32, 0.02);
  return all;
}

void expect_adam_as_on_cpu(bool decoupled) {
  std::vector<AdamParameter> cpu = adam_parameters();
  cpu[5].gradient.data<float>()[254] = NAN;
  cpu[6].gradient.data<float>()[0] = INFINITY;
  std::vector<AdamParameter> cuda = cpu;
  for (AdamParameter& p : cuda) {
    for (Array* array : {&p.weight, &p.first_moment, &p.second_moment, &p.gradient})
      *array = on_cuda(*array);
  }
  for (int step = 1; step <= 3; ++step) {
    const AdamStep adam{.beta1 = 0.9,
                        .beta2 = 0.98,
                        .epsilon = 1e-9,
                        .decoupled = decoupled,
                        .correction1 = 1 - std::pow(0.9, step),
                        .correction2 = 1 - std::pow(0.98, step),
                        .gradient_scale = 0.5};
    backend::adam(Cpu{}, cpu, adam);
    backend::adam(Cuda{}, cuda, adam);
  }
  for (size_t i = 0; i < cpu.size(); ++i) {
    SCOPED_TRACE(i);
    expect_alike(cuda[i].weight, cpu[i].weight);
    expect_alike(cuda[i].first_moment, cpu[i].first_moment);
    expect_alike(cuda[i].second_moment, cpu[i].second_moment);
  }
}

TEST_F(OptimizerOnCuda, AdamStepsAsOnTheCpu) {
  expect_adam_as_on_cpu(true);
  expect_adam_as_on_cpu(false);
}

TEST_F(OptimizerOnCuda, AdamStepsBfloat16) {
  std::vector<AdamParameter> wide, narrow;
  for (const DType dtype : {kFloat64, kBFloat16}) {
    const auto array = [&](int seed) {
      return numbers(100, seed, kBFloat16).to(dtype);  // of the same values
    };
    AdamParameter p{.weight = array(1),
                    .first_moment = array(2),
                    .second_moment = Array::full({100}, 0.25, dtype),
                    .gradient = array(3),
                    .learning_rate = 0.125,
                    .decay = 0.1};
    if (dtype == kFloat64) {
      wide.push_back(p);
    } else {
      narrow.push_back({on_cuda(p.weight), on_cuda(p.first_moment), on_cuda(p.second_moment),
                        on_cuda(p.gradient), p.learning_rate, p.decay});
    }
  }
  const AdamStep step{.beta1 = 0.5,
                      .beta2 = 0.75,
                      .epsilon = 1e-6,
                      .decoupled = true,
                      .correction1 = 0.5,
                      .correction2 = 0.25};
  backend::adam(Cpu{}, wide, step);
  backend::adam(Cuda{}, narrow, step);
  const std::vector<double> actual = test::numbers_of(narrow[0].weight),
                            expected = test::numbers_of(wide[0].weight);
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(actual[i], expected[i], 0x1p-8) << i;
}

TEST_F(OptimizerOnCuda, SgdStepsAsOnTheCpu) {
  for (const bool nesterov : {false, true}) {
    std::vector<SgdParameter> cpu, cuda;
    for (size_t i = 0; i < 2 * kSizes.size(); ++i) {
      const int64_t size = kSizes[i / 2];
      const DType dtype = i % 3 == 0 ? kFloat64 : kFloat32;
      const int seed = static_cast<int>(i);
      cpu.push_back({.weight = numbers(size, seed, dtype),
                     .velocity = i % 2 == 0 ? numbers(size, seed + 1, dtype) : Array(),
                     .gradient = numbers(size, seed + 2, dtype),
                     .learning_rate = i < 9 ? 0.1 : 0.3,
                     .decay = 0.01 * static_cast<double>(i % 4)});
      const SgdParameter& p = cpu.back();
      cuda.push_back(
          {on_cuda(p.weight), on_cuda(p.velocity), on_cuda(p.gradient), p.learning_rate, p.decay});
    }
    const SgdStep step{.momentum = 0.9, .nesterov = nesterov, .gradient_scale = 2};
    for (int i = 0; i < 2; ++i) {
      backend::sgd(Cpu{}, cpu, step);
      backend::sgd(Cuda{}, cuda, step);
    }
    for (size_t i = 0; i < cpu.size(); ++i) {
      SCOPED_TRACE(i);
      expect_alike(cuda[i].weight, cpu[i].weight);
      if (cpu[i].velocity.defined()) expect_alike(cuda[i].velocity, cpu[i].velocity);
    }
  }
}

TEST_F(OptimizerOnCuda, MovesAveragesAsOnTheCpu) {
  std::vector<MovingAverageParameter> cpu, cuda;
  for (const int64_t size : kSizes) {
    for (const DType dtype : {kFloat32, kFloat64}) {
      cpu.push_back({numbers(size, 1, dtype), numbers(size, 2, dtype)});
      cuda.push_back({on_cuda(cpu.back().average), on_cuda(cpu.back().weight)});
    }
  }
  backend::moving_average(Cpu{}, cpu, 0.9);
  backend::moving_average(Cuda{}, cuda, 0.9);
  for (size_t i = 0; i < cpu.size(); ++i) expect_alike(cuda[i].average, cpu[i].average);
}

TEST_F(OptimizerOnCuda, SumsSquares) {
  const auto sum_of = [](const std::vector<Array>& arrays) {
    std::vector<Array> copies;
    for (const Array& array : arrays) copies.push_back(on_cuda(array));
    const Array sum = backend::sum_of_squares(Cuda{}, copies);
    EXPECT_EQ(sum.shape(), Shape());
    EXPECT_EQ(sum.device(), Device::cuda());
    return sum.values<double>()[0];
  };
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({numbers(0, 1, kFloat32)}), 0);
  EXPECT_EQ(sum_of({Array::full({1}, -3, kFloat32), Array::full({4097}, 0.5, kBFloat16),
                    Array::full({3}, 2, kFloat64)}),
            9 + 4097 / 4.0 + 12);
  std::vector<Array> many;
  for (const int64_t size : kSizes) many.push_back(numbers(size, 1, kFloat32));
  for (int i = 0; i < 400; ++i) many.push_back(numbers(i % 5, i, i % 7 == 0 ? kFloat64 : kFloat32));
  const double expected = backend::sum_of_squares(Cpu{}, many).values<double>()[0];
  EXPECT_NEAR(sum_of(many), expected, 1e-12 * expected);
  EXPECT_EQ(sum_of(many), sum_of(many));
  many[3].data<float>()[2] = NAN;
  EXPECT_TRUE(std::isnan(sum_of(many)));
  // Squares beyond the range of float32.
  EXPECT_EQ(sum_of({Array::full({1}, 0x1p100, kFloat32)}), 0x1p200);
}

}  // namespace
}  // namespace gs
