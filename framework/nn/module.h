#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/tensor/tensor.h"

namespace gs::nn {

class Module;

// A tensor of a module that is trained, saved and loaded under its path.
class Parameter {
 public:
  struct Config {
    bool decay = true;  // whether weight decay applies; by default not to biases and norms
  };

  // Enrols as `name` in `owner`, which must outlive it. An undefined tensor makes no parameter:
  // a bias that was not asked for.
  Parameter(Module& owner, std::string name, Tensor tensor, Config config);
  Parameter(Module& owner, std::string name, Tensor tensor)
      : Parameter(owner, std::move(name), std::move(tensor), Config()) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const { return name_; }
  const Tensor& tensor() const { return tensor_; }
  operator const Tensor&() const { return tensor_; }
  Tensor* operator->() { return &tensor_; }
  const Tensor* operator->() const { return &tensor_; }
  bool decays() const { return config_.decay; }
  // Sees the values of `other` from now on; shapes must agree. Both names stay, the values are one.
  void tie(const Parameter& other);
  // Takes another array, of the same shape, in place of the present one.
  void replace(Tensor tensor);

 private:
  std::string name_;
  Tensor tensor_;
  Config config_;
};

// A parameter and its path from the module that was asked, "encoder/layers/0/norm/weight".
struct NamedParameter {
  std::string path;
  Parameter* parameter;
};

// A part of a model: owns parameters and children, which enrol by name when they are declared.
// Neither copied nor moved. A new one is a struct whose operator() computes:
//   struct Mlp : nn::Module {
//     nn::Child<nn::Linear> first{*this, "first", 784, 128}, second{*this, "second", 128, 10};
//     Tensor operator()(const Tensor& x) const { return second(relu(first(x))); }  // (B, 784) ->
//     (B, 10)
//   };
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  // Every parameter under each of its paths, in the order of declaration.
  std::vector<NamedParameter> named_parameters() const;
  // Every parameter once: tied ones under their first path.
  std::vector<NamedParameter> parameters() const;
  int64_t parameter_count() const;

  // Training (dropout active) or evaluating, here and in all children. Modules start in training.
  void train(bool training = true);
  void evaluate() { train(false); }
  bool training() const { return training_; }

  void clear_gradients();
  // Moves all parameters, and what belongs to them; optimizers made before keep the old ones.
  void to(Device device);
  void to(DType dtype);

  // A table of the parameters: path, shape, count; and the total.
  std::string summary() const;

 protected:
  // Moves what is no parameter, such as a table that is computed; `to` calls it.
  virtual void move_tables(Device) {}

 private:
  friend class Parameter;
  template <typename ChildModule>
  friend class Child;

  void check_name(const std::string& name) const;
  void enrol(Parameter& parameter);
  void enrol(std::string name, Module& child);
  void collect(const std::string& prefix, std::vector<NamedParameter>& result) const;
  void convert(const std::function<Array(const Array&)>& conversion);
  void move_all_tables(Device device);

  std::vector<Parameter*> own_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
};

// A module inside another: enrolled under its name, called and read like the module itself.
template <typename ChildModule>
class Child {
 public:
  template <typename... Arguments>
  Child(Module& owner, std::string name, Arguments&&... arguments)
      : module_(std::forward<Arguments>(arguments)...) {
    owner.enrol(std::move(name), module_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  ChildModule* operator->() { return &module_; }
  const ChildModule* operator->() const { return &module_; }
  ChildModule& operator*() { return module_; }
  const ChildModule& operator*() const { return module_; }
  template <typename... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) const {
    return module_(std::forward<Arguments>(arguments)...);
  }

 private:
  ChildModule module_;
};

// A numbered row of modules of one kind, made alike: "layers/0", "layers/1", ...
template <typename ChildModule>
class ChildList : public Module {
 public:
  template <typename... Arguments>
  explicit ChildList(int64_t count, const Arguments&... arguments) {
    for (int64_t i = 0; i < count; ++i) {
      children_.push_back(
          std::make_unique<Child<ChildModule>>(*this, std::to_string(i), arguments...));
    }
  }
  int64_t size() const { return static_cast<int64_t>(children_.size()); }
  ChildModule& operator[](int64_t i) { return **children_[static_cast<size_t>(i)]; }
  const ChildModule& operator[](int64_t i) const { return **children_[static_cast<size_t>(i)]; }

 private:
  std::vector<std::unique_ptr<Child<ChildModule>>> children_;
};

}  // namespace gs::nn
