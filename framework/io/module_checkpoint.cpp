#include "framework/io/module_checkpoint.h"

#include <map>

namespace gs {
namespace {

// The first path of each tied parameter.
std::map<const Node*, std::string> first_paths(const nn::Module& module) {
  std::map<const Node*, std::string> paths;
  for (const nn::NamedParameter& named : module.parameters()) {
    paths[named.parameter->tensor().node().get()] = named.path;
  }
  return paths;
}

ExpectedNames expected_names(const nn::Module& module) {
  ExpectedNames expected;
  for (const nn::NamedParameter& named : module.parameters()) {
    expected[named.path] = {named.parameter->tensor().shape(), named.parameter->tensor().dtype()};
  }
  return expected;
}

void assign(nn::Parameter& parameter, const Array& values) {
  parameter->assign(Tensor(values.to(parameter.tensor().device())));
}

}  // namespace

void store_parameters(const nn::Module& module, Checkpoint& checkpoint) {
  const std::map<const Node*, std::string> firsts = first_paths(module);
  for (const nn::NamedParameter& named : module.named_parameters()) {
    const Tensor& tensor = named.parameter->tensor();
    const std::string& first = firsts.at(tensor.node().get());
    if (first == named.path) {
      checkpoint.parameters[named.path] = tensor.value();
    } else {
      checkpoint.ties[named.path] = first;
    }
  }
}

void check_parameters(const nn::Module& module, const Checkpoint& checkpoint,
                      const std::string& path) {
  check_names(expected_names(module), checkpoint.parameters, path);
}

void load_parameters(nn::Module& module, const Checkpoint& checkpoint, const std::string& path) {
  check_parameters(module, checkpoint, path);
  const NoGrad no_grad;
  for (const nn::NamedParameter& named : module.parameters()) {
    assign(*named.parameter, checkpoint.parameters.at(named.path));
  }
}

NameComparison load_matching_parameters(nn::Module& module, const Checkpoint& checkpoint,
                                        const std::string& path) {
  NameComparison comparison = compare_names(expected_names(module), checkpoint.parameters);
  check(comparison.matched > 0, "load: nothing in {} matches the model: {}", path,
        comparison.text());
  const NoGrad no_grad;
  for (const nn::NamedParameter& named : module.parameters()) {
    const Tensor& tensor = named.parameter->tensor();
    const auto found = checkpoint.parameters.find(named.path);
    if (found != checkpoint.parameters.end() && found->second.shape() == tensor.shape() &&
        found->second.dtype() == tensor.dtype()) {
      assign(*named.parameter, found->second);
    }
  }
  return comparison;
}

void save_model(const std::string& path, const nn::Module& module) {
  save_model(path, module, {}, 0);
}

void save_model(const std::string& path, const nn::Module& module, const OptimizerState& state,
                int64_t steps) {
  Checkpoint checkpoint;
  store_parameters(module, checkpoint);
  checkpoint.optimizer = state;
  checkpoint.training["optimizer_steps"] = steps;
  save_checkpoint(path, checkpoint);
}

void load_model(const std::string& path, nn::Module& module) {
  load_parameters(module, load_model_checkpoint(path), path);
}

int64_t optimizer_steps(const Checkpoint& checkpoint, const std::string& path) {
  const auto found = checkpoint.training.find("optimizer_steps");
  check(found != checkpoint.training.end() && std::holds_alternative<int64_t>(found->second),
        "load: {} holds no optimizer; load the model alone", path);
  return std::get<int64_t>(found->second);
}

}  // namespace gs
