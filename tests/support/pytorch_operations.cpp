#include "tests/support/pytorch_operations.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/devices.h"
#include "tests/support/numbers.h"

namespace gs::test {
namespace {

void expect_case(FixtureOperation operation, const Fixture& fixture, DType dtype, Device device,
                 double tolerance) {
  const FixtureInputs inputs(fixture, dtype, device);
  const Tensor y = operation(inputs, fixture);
  const FixtureArray& expected = fixture.array("outputs/output");
  EXPECT_EQ(y.shape(), expected.shape);
  EXPECT_EQ(y.device(), device);
  expect_near(y, expected.values, tolerance);
  const Array upstream = Array::of<double>(y.shape(), fixture.array("upstream").values);
  y.backward(Tensor(upstream.to(dtype).to(device)));
  for (const auto& [name, tensor] : inputs.all()) {
    if (!tensor.needs_grad()) continue;
    SCOPED_TRACE(name);
    EXPECT_EQ(tensor.gradient().shape(), fixture.array("gradients/" + name).shape);
    expect_near(tensor.gradient(), fixture.array("gradients/" + name).values, tolerance);
  }
}

}  // namespace

FixtureInputs::FixtureInputs(const Fixture& fixture, DType dtype, Device device)
    : fixture_(fixture), device_(device) {
  for (const std::string& name : fixture.names("inputs")) {
    const FixtureArray& array = fixture.array("inputs/" + name);
    const Array values = Array::of<double>(array.shape, array.values);
    Tensor tensor(values.to(is_floating(array.dtype) ? dtype : array.dtype).to(device));
    if (fixture.has("gradients/" + name)) tensor.set_needs_grad();
    tensors_.emplace(name, tensor);
  }
}

void expect_pytorch_agrees(const std::map<std::string, FixtureOperation>& operations) {
  std::set<std::string> seen;
  for (const Fixture& fixture : Fixture::load_all("operations")) {
    const auto operation = operations.find(fixture.operation());
    if (operation == operations.end()) continue;
    seen.insert(fixture.operation());
    SCOPED_TRACE(fixture.name());
    for_each_device([&](Device device) {
      expect_case(operation->second, fixture, kFloat64, device, 1e-10);  // the file has 12 digits
      expect_case(operation->second, fixture, kFloat32, device, 1e-5);
    });
  }
  EXPECT_EQ(seen.size(), operations.size());
}

}  // namespace gs::test
