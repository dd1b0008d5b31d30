#include "tests/support/pytorch_operations.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/numbers.h"

namespace gs::test {
namespace {

void expect_case(FixtureOperation operation, const Fixture& fixture, DType dtype,
                 double tolerance) {
  const FixtureInputs inputs(fixture, dtype);
  const Tensor y = operation(inputs, fixture);
  const FixtureArray& expected = fixture.array("outputs/output");
  EXPECT_EQ(y.shape(), expected.shape);
  expect_near(y, expected.values, tolerance);
  y.backward(Tensor(Array::of<double>(y.shape(), fixture.array("upstream").values).to(dtype)));
  for (const auto& [name, tensor] : inputs.all()) {
    if (!tensor.needs_grad()) continue;
    SCOPED_TRACE(name);
    EXPECT_EQ(tensor.gradient().shape(), fixture.array("gradients/" + name).shape);
    expect_near(tensor.gradient(), fixture.array("gradients/" + name).values, tolerance);
  }
}

}  // namespace

FixtureInputs::FixtureInputs(const Fixture& fixture, DType dtype) : fixture_(fixture) {
  for (const std::string& name : fixture.names("inputs")) {
    const FixtureArray& array = fixture.array("inputs/" + name);
    const Array values = Array::of<double>(array.shape, array.values);
    Tensor tensor(values.to(is_floating(array.dtype) ? dtype : array.dtype));
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
    expect_case(operation->second, fixture, kFloat64, 1e-10);  // the file holds 12 digits
    expect_case(operation->second, fixture, kFloat32, 1e-5);
  }
  EXPECT_EQ(seen.size(), operations.size());
}

}  // namespace gs::test
