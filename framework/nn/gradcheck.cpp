#include "framework/nn/gradcheck.h"

#include <fmt/format.h>

#include "framework/core/random.h"

namespace gs::nn {
namespace {

// Gives the parameters of a model other tensors; on its end they have their own ones back.
class Substitution {
 public:
  explicit Substitution(const Module& model) : named_(model.named_parameters()) {
    for (const NamedParameter& named : named_) own_.push_back(named.parameter->tensor());
  }
  ~Substitution() {
    for (size_t i = 0; i < named_.size(); ++i) named_[i].parameter->replace(own_[i]);
  }
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

  // `tensor` in the place of `own`, under all names that it has.
  void substitute(const Tensor& own, const Tensor& tensor) {
    for (size_t i = 0; i < named_.size(); ++i) {
      if (own_[i].shares_storage(own)) named_[i].parameter->replace(tensor);
    }
  }

 private:
  std::vector<NamedParameter> named_;
  std::vector<Tensor> own_;
};

class RestoredRandomState {
 public:
  RestoredRandomState() : state_(default_generator().state()) {}
  ~RestoredRandomState() { restore(); }
  RestoredRandomState(const RestoredRandomState&) = delete;
  RestoredRandomState& operator=(const RestoredRandomState&) = delete;

  void restore() const { default_generator().restore(state_); }

 private:
  RandomState state_;
};

}  // namespace

GradcheckResult gradcheck(Module& model,
                          const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const RestoredRandomState random;
  Substitution substitution(model);
  std::vector<Tensor> trained, variables;
  std::vector<std::string> names;
  for (const NamedParameter& named : model.parameters()) {
    const Tensor own = named.parameter->tensor();
    if (!own.needs_grad()) {  // frozen: in float64 like the others, but not a variable
      substitution.substitute(own, Tensor(own.value().to(kFloat64)));
      continue;
    }
    trained.push_back(own);
    variables.push_back(own);
    names.push_back(named.path);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    variables.push_back(inputs[i]);
    names.push_back(fmt::format("input {}", i));
  }
  const auto function_of_all = [&](const std::vector<Tensor>& all) {
    for (size_t i = 0; i < trained.size(); ++i) substitution.substitute(trained[i], all[i]);
    random.restore();
    return function({all.begin() + static_cast<std::ptrdiff_t>(trained.size()), all.end()});
  };
  return gs::gradcheck(function_of_all, variables, options, names);
}

}  // namespace gs::nn
