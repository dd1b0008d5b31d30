#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "framework/backend/array.h"
#include "framework/tensor/graph.h"

namespace gs {

// An array with its place in the recorded graph: what users compute with. A copy is another handle
// to the same values and the same place. Operations are free functions (framework/ops/).
class Tensor {
 public:
  Tensor() = default;
  // No gradient is recorded for it until set_needs_grad().
  explicit Tensor(Array value) : value_(std::move(value)) {}
  Tensor(Array value, std::shared_ptr<Node> node)
      : value_(std::move(value)), node_(std::move(node)) {}
  // From values, outermost first: Tensor::of<float>({2, 2}, {1, 2, 3, 4}).
  template <typename T>
  static Tensor of(const Shape& shape, const std::vector<T>& values) {
    return Tensor(Array::of<T>(shape, values));
  }

  bool defined() const { return value_.defined(); }
  const Shape& shape() const { return value_.shape(); }
  int rank() const { return value_.rank(); }
  int64_t size(int64_t dimension) const { return value_.shape().size(dimension); }
  int64_t elements() const { return value_.elements(); }
  DType dtype() const { return value_.dtype(); }
  Device device() const { return value_.device(); }
  const Array& value() const { return value_; }

  // The one element of a tensor that has just one.
  double item() const;
  // All elements, outermost first.
  template <typename T>
  std::vector<T> values() const {
    return value_.values<T>();
  }
  // Whether both see the same memory (reshape shares it, permute and slice copy).
  bool shares_storage(const Tensor& other) const { return value_.shares_memory(other.value_); }

  bool needs_grad() const { return node_ != nullptr; }
  // Makes a leaf that collects gradients, or frees it from them; results of operations are refused.
  // To be set before the tensor is copied: copies made earlier are not affected.
  Tensor& set_needs_grad(bool needs_grad = true);
  bool is_leaf() const { return node_ == nullptr || node_->leaf; }
  // The gradient that backward has summed up, undefined before; results of operations have one
  // only after keep_gradient().
  Tensor gradient() const { return node_ == nullptr ? Tensor() : Tensor(node_->gradient); }
  void set_gradient(const Tensor& gradient);
  void clear_gradient();
  void keep_gradient();
  // Calls `hook` with the complete gradient of this tensor in each backward; a defined result
  // takes its place.
  void on_gradient(std::function<Tensor(const Tensor&)> hook);

  // Gradients of this tensor, of one element, with respect to all leaves that it depends on.
  void backward() const;
  // The same for any shape, from the gradient of some later result. With `retain_graph` the graph
  // can be run backward once more.
  struct BackwardOptions {
    bool retain_graph = false;
  };
  void backward(const Tensor& upstream) const { backward(upstream, BackwardOptions()); }
  void backward(const Tensor& upstream, BackwardOptions options) const;

  // The same memory without a place in the graph.
  Tensor detach() const { return Tensor(value_); }
  Tensor to(Device device) const;
  const std::shared_ptr<Node>& node() const { return node_; }

  // Changes of the values in place. They are not recorded: gradients take them as constants, and
  // a gradient that needs the values from before refuses to run. `assign` needs equal shapes and
  // types and is refused for results of operations that are recorded.
  void assign(const Tensor& values);
  void add_in_place(const Tensor& values);

  // The values as nested rows, long dimensions cut in the middle.
  std::string text() const;

 private:
  Array value_;
  std::shared_ptr<Node> node_;
};

// Joins a result to the graph when one of its inputs needs a gradient: `backward` gets the
// gradient of `y` and returns those of `inputs`. This is how operations are defined, the user's
// own as well; its signature is (const Array& dy) or (const Array& dy, const Needs& needs).
Tensor record_node(const char* name, Array y, std::span<const Tensor> inputs, Backward backward);

template <typename Function>
Tensor record(const char* name, Array y, std::span<const Tensor> inputs, Function&& backward) {
  if constexpr (std::is_invocable_v<Function, const Array&, const Needs&>) {
    return record_node(name, std::move(y), inputs, std::forward<Function>(backward));
  } else {
    return record_node(name, std::move(y), inputs,
                       [backward = std::forward<Function>(backward)](
                           const Array& dy, const Needs&) mutable { return backward(dy); });
  }
}

template <typename Function>
Tensor record(const char* name, Array y, std::initializer_list<Tensor> inputs,
              Function&& backward) {
  return record(name, std::move(y), std::span<const Tensor>(inputs.begin(), inputs.size()),
                std::forward<Function>(backward));
}

// For operations that have no gradient and give floating results: refuses inputs that need one,
// where training would go on with the graph cut in silence.
void refuse_gradient(const char* name, std::initializer_list<Tensor> inputs);

}  // namespace gs
