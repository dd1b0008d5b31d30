// Optimizers on a CUDA device against the CPU: ten steps of a model with parameters of odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "framework/optim/adam.h"
#include "framework/optim/clip.h"
#include "framework/optim/moving_average.h"
#include "framework/optim/sgd.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;

using OptimizersOnCuda = test::CudaTest;

const Device kCuda = Device::cuda();

// One parameter without elements, one longer than a block, some of a few.
struct Model : nn::Module {
  explicit Model(DType dtype, Device device) {
    for (const int64_t size : {1, 3001, 0, 33, 256}) {
      const std::string name = std::to_string(all.size());
      const Tensor values = random_tensor<double>({size}, 1 + all.size());
      all.push_back(std::make_unique<nn::Parameter>(*this, name, Tensor(values.value().to(dtype))));
    }
    to(device);
  }
  // None for the last parameter in odd steps.
  void take_gradients(uint64_t step) {
    for (size_t i = 0; i < all.size(); ++i) {
      nn::Parameter& parameter = *all[i];
      if (step % 2 == 1 && i + 1 == all.size()) continue;
      const Tensor values = random_tensor<double>(parameter->shape(), 100 * step + i);
      parameter->set_gradient(
          Tensor(values.value().to(parameter->dtype()).to(parameter->device())));
    }
  }
  std::vector<double> values() const {
    std::vector<double> values;
    for (const auto& parameter : all) {
      const std::vector<double> own = (*parameter)->values<double>();
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }
  std::vector<std::unique_ptr<nn::Parameter>> all;
};

void expect_values(const std::vector<double>& actual, const std::vector<double>& expected,
                   double tolerance) {
  test::expect_near(Tensor::of<double>({static_cast<int64_t>(actual.size())}, actual), expected,
                    tolerance);
}

// Ten steps with clipping and a moving average, and everything that they leave.
template <typename Optimizer, typename Config>
void expect_same_steps(const Config& config, DType dtype, double tolerance) {
  Model here(dtype, Device::cpu()), there(dtype, kCuda);
  Optimizer optimizer(here, config), other(there, config);
  MovingAverage average(here, 0.9), other_average(there, 0.9);
  for (uint64_t step = 0; step < 10; ++step) {
    here.take_gradients(step);
    there.take_gradients(step);
    const double norm = gradient_norm(here);
    EXPECT_NEAR(gradient_norm(there), norm, 1e-6 * norm);
    optimizer.step({.gradient_scale = clip_factor(norm, 1)});
    other.step({.gradient_scale = clip_factor(norm, 1)});
    average.update();
    other_average.update();
  }
  expect_values(there.values(), here.values(), tolerance);
  const OptimizerState expected = optimizer.state(), actual = other.state();
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, array] : expected) {
    SCOPED_TRACE(name);
    EXPECT_EQ(actual.at(name).device(), kCuda);
    test::expect_near(Tensor(actual.at(name)), array.template values<double>(), tolerance);
  }
  average.swap();
  other_average.swap();
  expect_values(there.values(), here.values(), tolerance);
}

TEST_F(OptimizersOnCuda, TenStepsAreThoseOfTheCpu) {
  for (const auto& [dtype, tolerance] : {std::pair{kFloat64, 1e-12}, {kFloat32, 1e-5}}) {
    for (const bool decoupled : {false, true}) {
      expect_same_steps<Adam>(AdamConfig{.learning_rate = 0.01,
                                         .beta2 = 0.98,
                                         .weight_decay = 0.1,
                                         .decoupled_decay = decoupled},
                              dtype, tolerance);
    }
    for (const bool nesterov : {false, true}) {
      expect_same_steps<Sgd>(
          SgdConfig{
              .learning_rate = 0.1, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.01},
          dtype, tolerance);
    }
    expect_same_steps<Sgd>(SgdConfig{.learning_rate = 0.1}, dtype, tolerance);
  }
}

TEST_F(OptimizersOnCuda, ClippingIsThatOfTheCpu) {
  Model here(kFloat32, Device::cpu()), there(kFloat32, kCuda);
  for (const double maximum : {1.0, 1e6}) {
    for (Model* model : {&here, &there}) model->take_gradients(2);
    const double norm = clip_gradient_norm(here, maximum);
    EXPECT_NEAR(clip_gradient_norm(there, maximum), norm, 1e-6 * norm);
    for (size_t i = 0; i < here.all.size(); ++i)
      test::expect_near((*there.all[i])->gradient(), (*here.all[i])->gradient().values<double>(),
                        1e-6);
  }
  (*there.all[1])->set_gradient(Tensor(Array::full({3001}, NAN, kFloat32, kCuda)));
  EXPECT_TRUE(std::isnan(clip_gradient_norm(there, 1)));
  EXPECT_FALSE((*there.all[0])->gradient().defined());
}

TEST_F(OptimizersOnCuda, StatesMoveBetweenDevices) {
  Model here(kFloat32, Device::cpu()), there(kFloat32, kCuda);
  Adam optimizer(here), other(there);
  for (uint64_t step = 0; step < 3; ++step) {
    here.take_gradients(step);
    optimizer.step();
  }
  other.restore(optimizer.state(), 3);
  for (const auto& [name, array] : optimizer.state()) {
    EXPECT_EQ(other.state().at(name).values<float>(), array.values<float>()) << name;
    EXPECT_EQ(other.state().at(name).device(), kCuda);
  }
  Adam back(here);
  back.restore(other.state(), 3);
  EXPECT_EQ(back.state().at("1/first_moment").device(), Device::cpu());
}

TEST_F(OptimizersOnCuda, AModelOnTwoDevicesIsRefused) {
  Model model(kFloat32, Device::cpu());
  model.take_gradients(0);
  const Tensor moved = (*model.all[3])->to(kCuda).detach();
  model.all[3]->replace(Tensor(moved).set_needs_grad());
  EXPECT_EQ(error_of([&] { Adam optimizer(model); }),
            "optimizer: parameters must be on one device, got cpu for 0 and cuda:0 for 3; move the "
            "model as a whole");
  (*model.all[3])->set_gradient(moved);
  EXPECT_EQ(error_of([&] { gradient_norm(model); }),
            "gradient norm: gradients must be on one device, got cpu and cuda:0 for 3; move the "
            "model as a whole");
  EXPECT_EQ(error_of([&] { (*model.all[3])->set_gradient(random_tensor<float>({33}, 1)); }),
            "set_gradient: needs [33] float32 on cuda:0, got [33] float32 on cpu");
}

}  // namespace
}  // namespace gs
