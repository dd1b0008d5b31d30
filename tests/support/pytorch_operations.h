#pragma once

#include <map>
#include <string>

#include "framework/tensor/tensor.h"
#include "tests/support/fixture.h"

namespace gs::test {

// The inputs of a case by name; floating ones of one type, as leaves where the case has gradients.
class FixtureInputs {
 public:
  FixtureInputs(const Fixture& fixture, DType dtype, Device device = Device::cpu());

  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  double option(const std::string& name) const { return fixture_.number("options/" + name); }
  int64_t integer(const std::string& name) const { return static_cast<int64_t>(option(name)); }
  std::vector<int64_t> integers(const std::string& name) const {
    return fixture_.integers("options/" + name);
  }
  bool has_option(const std::string& name) const { return fixture_.has("options/" + name); }
  const std::map<std::string, Tensor>& all() const { return tensors_; }
  Device device() const { return device_; }

 private:
  const Fixture& fixture_;
  const Device device_;
  std::map<std::string, Tensor> tensors_;
};

using FixtureOperation = Tensor (*)(const FixtureInputs& inputs, const Fixture& fixture);

// Runs each case of tests/data/pytorch/operations.json whose operation is among those given, in
// both floating types and on each device, and compares values and gradients. Each operation must
// have a case.
void expect_pytorch_agrees(const std::map<std::string, FixtureOperation>& operations);

}  // namespace gs::test
