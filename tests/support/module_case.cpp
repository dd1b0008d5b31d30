#include "tests/support/module_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/random.h"
#include "framework/nn/gradcheck.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"

namespace gs::test {
namespace {

Tensor tensor_of(const FixtureArray& array, DType dtype, Device device) {
  return Tensor(Array::of<double>(array.shape, array.values).to(dtype).to(device));
}

void expect_case(const Fixture& fixture, nn::Module& module, const ModuleCall& call, DType dtype,
                 Device device, double tolerance) {
  module.to(dtype);
  module.to(device);
  std::vector<std::string> paths;
  for (const auto& [path, parameter] : module.parameters()) {
    (*parameter)->assign(tensor_of(fixture.array("parameters/" + path), dtype, device));
    paths.push_back(path);
  }
  EXPECT_THAT(paths, testing::UnorderedElementsAreArray(fixture.names("parameters")));
  const FixtureInputs inputs(fixture, dtype, device);
  const std::map<std::string, Tensor> outputs = call(inputs);
  for (const std::string& name : fixture.names("outputs")) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(outputs.contains(name));
    EXPECT_EQ(outputs.at(name).shape(), fixture.array("outputs/" + name).shape);
    expect_near(outputs.at(name), fixture.array("outputs/" + name).values, tolerance);
  }
  outputs.at("output").backward(tensor_of(fixture.array("upstream"), dtype, device));
  size_t compared = 0;
  const auto expect_gradient = [&](const std::string& name, const Tensor& tensor) {
    SCOPED_TRACE(name);
    ++compared;
    ASSERT_TRUE(tensor.gradient().defined());
    EXPECT_EQ(tensor.gradient().shape(), tensor.shape());
    expect_near(tensor.gradient(), fixture.array("gradients/" + name).values, tolerance);
  };
  for (const auto& [path, parameter] : module.parameters()) {
    expect_gradient(path, parameter->tensor());
  }
  for (const auto& [name, tensor] : inputs.all()) {
    if (tensor.needs_grad()) expect_gradient(name, tensor);
  }
  EXPECT_EQ(compared, fixture.names("gradients").size());
}

using Numbers = std::map<std::string, std::vector<double>>;

// The output and all gradients, under their paths.
Numbers numbers_of(nn::Module& module,
                   const std::function<Tensor(const std::vector<Tensor>&)>& function,
                   const std::vector<Tensor>& inputs, DType dtype, Device device) {
  module.to(dtype);
  module.to(device);
  std::vector<Tensor> converted;
  for (const Tensor& input : inputs) {
    const bool floating = is_floating(input.dtype());
    Tensor tensor((floating ? input.value().to(kFloat32).to(dtype) : input.value()).to(device));
    if (floating) tensor.set_needs_grad();
    converted.push_back(tensor);
  }
  const Tensor y = function(converted);
  EXPECT_EQ(y.dtype(), dtype);
  EXPECT_EQ(y.device(), device);
  y.backward(Tensor(random_tensor<float>(y.shape(), 99).value().to(dtype).to(device)));
  Numbers numbers{{"output", y.values<double>()}};
  for (const auto& [path, parameter] : module.parameters()) {
    const Tensor gradient = (*parameter)->gradient();
    EXPECT_TRUE(gradient.defined()) << path;
    if (!gradient.defined()) continue;
    EXPECT_EQ(gradient.shape(), (*parameter)->shape()) << path;
    EXPECT_EQ(gradient.dtype(), dtype) << path;
    numbers["parameter " + path] = gradient.values<double>();
  }
  for (size_t i = 0; i < converted.size(); ++i) {
    if (!converted[i].needs_grad()) continue;
    EXPECT_TRUE(converted[i].gradient().defined()) << "input " << i;
    if (!converted[i].gradient().defined()) continue;
    numbers["input " + std::to_string(i)] = converted[i].gradient().values<double>();
  }
  return numbers;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// `tolerance` is relative to the largest number of an array, which is at least 1.
void expect_same_numbers(const Numbers& actual, const Numbers& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    SCOPED_TRACE(name);
    expect_near(Tensor::of<double>({static_cast<int64_t>(values.size())}, actual.at(name)), values,
                tolerance * std::max(1.0, largest_of(values)));
  }
}

}  // namespace

void expect_pytorch_module(const std::string& group, const std::string& name, nn::Module& module,
                           const ModuleCall& call) {
  SCOPED_TRACE(name);
  const Fixture fixture = Fixture::load(group, name);
  for_each_device([&](Device device) {
    expect_case(fixture, module, call, kFloat64, device, 1e-10);
    expect_case(fixture, module, call, kFloat32, device, 1e-5);
  });
  module.to(Device::cpu());
}

void randomize(nn::Module& module, uint64_t seed) {
  for (const auto& [path, parameter] : module.parameters()) {
    std::vector<double> values = random_numbers((*parameter)->elements(), ++seed);
    for (double& value : values) value /= 4;
    const Array array = Array::of<double>((*parameter)->shape(), values);
    const Tensor& own = parameter->tensor();
    (*parameter)->assign(Tensor(array.to(kFloat32).to(own.dtype()).to(own.device())));
  }
}

void check_module(nn::Module& module,
                  const std::function<Tensor(const std::vector<Tensor>&)>& function,
                  const std::vector<Tensor>& inputs) {
  randomize(module, 1000);
  const int64_t nodes = live_nodes();
  const GradcheckResult result = gradcheck(module, function, inputs);
  EXPECT_TRUE(result.passed) << result.message;
  EXPECT_GT(result.checked, 0);

  const RandomState random = default_generator().state();
  const auto numbers = [&](DType dtype, Device device) {
    default_generator().restore(random);
    return numbers_of(module, function, inputs, dtype, device);
  };
  const Numbers in_double = numbers(kFloat64, Device::cpu());
  for_each_device([&](Device device) {
    if (device != Device::cpu()) expect_same_numbers(numbers(kFloat64, device), in_double, 1e-10);
    expect_same_numbers(numbers(kFloat32, device), in_double, 1e-5);
  });
  module.to(Device::cpu());
  for (const auto& [name, values] : in_double) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(std::isfinite(largest_of(values)));
    if (!name.starts_with("parameter ")) continue;
    if (name.ends_with("key/bias")) {
      EXPECT_LT(largest_of(values), 1e-12);
    } else {
      EXPECT_GT(largest_of(values), 1e-4) << "no gradient arrives";
    }
  }
  EXPECT_EQ(live_nodes(), nodes);
}

}  // namespace gs::test
