#include "framework/nn/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace gs::nn {
namespace {

// What makes two parameters one: the memory of their values. Frozen ones have no node to tell.
const void* identity(const Parameter& parameter) {
  const Tensor& tensor = parameter.tensor();
  if (tensor.elements() > 0) return tensor.value().raw();
  return tensor.needs_grad() ? static_cast<const void*>(tensor.node().get()) : &parameter;
}

}  // namespace

Parameter::Parameter(Module& owner, std::string name, Tensor tensor, Config config)
    : name_(std::move(name)), tensor_(std::move(tensor)), config_(config) {
  if (!tensor_.defined()) return;
  tensor_.set_needs_grad();
  owner.enrol(*this);
}

void Parameter::tie(const Parameter& other) {
  check(tensor_.defined() && other.tensor_.defined() && tensor_.shape() == other.tensor_.shape(),
        "tie: {} and {} must have one shape, got {} and {}", name_, other.name_,
        tensor_.defined() ? tensor_.shape().text() : "none",
        other.tensor_.defined() ? other.tensor_.shape().text() : "none");
  tensor_ = other.tensor_;
}

void Parameter::replace(Tensor tensor) {
  check(tensor_.defined() && tensor.defined() && tensor.shape() == tensor_.shape(),
        "parameter {}: must stay {}, got {}", name_,
        tensor_.defined() ? tensor_.shape().text() : "none",
        tensor.defined() ? tensor.shape().text() : "none");
  tensor_ = std::move(tensor);
}

void Module::check_name(const std::string& name) const {
  check(!name.empty() && name.find('/') == std::string::npos,
        "module: a name must be without '/' and not empty, got '{}'", name);
  const bool taken = std::any_of(own_.begin(), own_.end(),
                                 [&](const Parameter* p) { return p->name() == name; }) ||
                     std::any_of(children_.begin(), children_.end(),
                                 [&](const auto& c) { return c.first == name; });
  check(!taken, "module: two parts are named '{}'; rename one", name);
}

void Module::enrol(Parameter& parameter) {
  check_name(parameter.name());
  own_.push_back(&parameter);
}

void Module::enrol(std::string name, Module& child) {
  check_name(name);
  children_.emplace_back(std::move(name), &child);
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& result) const {
  for (Parameter* parameter : own_) result.push_back({prefix + parameter->name(), parameter});
  for (const auto& [name, child] : children_) child->collect(prefix + name + "/", result);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> result;
  collect("", result);
  return result;
}

std::vector<NamedParameter> Module::parameters() const {
  std::vector<NamedParameter> result;
  std::set<const void*> seen;
  for (const NamedParameter& named : named_parameters()) {
    if (seen.insert(identity(*named.parameter)).second) result.push_back(named);
  }
  return result;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const NamedParameter& named : parameters()) count += named.parameter->tensor().elements();
  return count;
}

void Module::train(bool training) {
  training_ = training;
  for (const auto& [name, child] : children_) child->train(training);
}

void Module::clear_gradients() {
  for (const NamedParameter& named : parameters()) (*named.parameter)->clear_gradient();
}

void Module::convert(const std::function<Array(const Array&)>& conversion) {
  const std::vector<NamedParameter> all = named_parameters();
  std::map<const void*, Tensor> converted;  // tied ones stay tied
  std::vector<Tensor> before;               // their memory is not given to others meanwhile
  for (const NamedParameter& named : all) {
    const Tensor& own = named.parameter->tensor();
    const auto [known, is_new] = converted.try_emplace(identity(*named.parameter));
    if (is_new) {
      before.push_back(own);
      known->second = Tensor(conversion(own.value()));
      if (own.needs_grad()) known->second.set_needs_grad();
    }
    named.parameter->replace(known->second);
  }
}

void Module::to(Device device) {
  convert([&](const Array& array) { return array.to(device); });
  move_all_tables(device);
}

void Module::move_all_tables(Device device) {
  move_tables(device);
  for (const auto& [name, child] : children_) child->move_all_tables(device);
}

void Module::to(DType dtype) {
  convert([&](const Array& array) { return array.to(dtype); });
}

std::string Module::summary() const {
  size_t width = 9;
  const std::vector<NamedParameter> all = named_parameters();
  for (const NamedParameter& named : all) width = std::max(width, named.path.size());
  std::string table = fmt::format("{:<{}}  {:>14}  {:>12}\n", "parameter", width, "shape", "count");
  std::set<const void*> seen;
  for (const NamedParameter& named : all) {
    const Tensor& tensor = named.parameter->tensor();
    const bool first = seen.insert(identity(*named.parameter)).second;
    table += fmt::format("{:<{}}  {:>14}  {:>12}\n", named.path, width, tensor.shape().text(),
                         first ? std::to_string(tensor.elements()) : "tied");
  }
  return table + fmt::format("{:<{}}  {:>14}  {:>12}\n", "total", width, "", parameter_count());
}

}  // namespace gs::nn
