#include "framework/tensor/tensor.h"

#include <fmt/format.h>

#include "framework/backend/copy.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

void check_alike(const char* operation, const Tensor& target, const Tensor& values) {
  check(target.shape() == values.shape() && target.dtype() == values.dtype() &&
            target.device() == values.device(),
        "{}: needs {} {} on {}, got {} {} on {}", operation, target.shape(), target.dtype(),
        target.device(), values.shape(), values.dtype(), values.device());
}

// Appends the part of `values` below one place of the dimensions before `dimension`.
void append_rows(std::string& text, const std::vector<double>& values, const Shape& shape,
                 int dimension, int64_t start) {
  if (dimension == shape.rank()) {
    text += fmt::format("{:.6g}", values[static_cast<size_t>(start)]);
    return;
  }
  constexpr int64_t kEdge = 3;
  int64_t stride = 1;
  for (int d = dimension + 1; d < shape.rank(); ++d) stride *= shape[d];
  text += "[";
  for (int64_t i = 0; i < shape[dimension]; ++i) {
    if (i > 0) text += ", ";
    if (shape[dimension] > 2 * kEdge + 1 && i == kEdge) {
      text += "..., ";
      i = shape[dimension] - kEdge;
    }
    append_rows(text, values, shape, dimension + 1, start + i * stride);
  }
  text += "]";
}

}  // namespace

double Tensor::item() const {
  check(elements() == 1, "item: needs one element, got shape {}", shape());
  return values<double>()[0];
}

Tensor& Tensor::set_needs_grad(bool needs_grad) {
  check(is_leaf(), "set_needs_grad: this tensor is the result of {}; detach it first",
        node_ ? node_->name : "");
  if (!needs_grad) {
    node_.reset();
  } else if (node_ == nullptr) {
    check(is_floating(dtype()), "set_needs_grad: needs float32 or float64, got {}", dtype());
    node_ = std::make_shared<Node>("leaf", value_);
    node_->leaf = true;
  }
  return *this;
}

void Tensor::set_gradient(const Tensor& gradient) {
  check(needs_grad(), "set_gradient: the tensor collects no gradients; call set_needs_grad first");
  check_alike("set_gradient", *this, gradient);
  node_->gradient = gradient.value();
}

void Tensor::clear_gradient() {
  if (node_ != nullptr) node_->gradient = Array();
}

void Tensor::keep_gradient() {
  check(needs_grad(),
        "keep_gradient: the tensor needs no gradient; call set_needs_grad on what it comes from");
  node_->keeps_gradient = true;
}

void Tensor::on_gradient(std::function<Tensor(const Tensor&)> hook) {
  check(needs_grad(),
        "on_gradient: the tensor needs no gradient; call set_needs_grad on what it comes from");
  node_->hooks.push_back(
      [hook = std::move(hook)](const Array& gradient) { return hook(Tensor(gradient)).value(); });
}

void Tensor::backward() const {
  check(
      elements() == 1,
      "backward: without an upstream gradient one element is needed, got shape {}; give a gradient",
      shape());
  backward(Tensor(Array::full(shape(), 1, dtype(), device())));
}

void Tensor::backward(const Tensor& upstream, BackwardOptions options) const {
  check(
      needs_grad(),
      "backward: nothing that this tensor was computed from needs a gradient; call set_needs_grad");
  check_alike("backward", *this, upstream);
  run_backward(node_, upstream.value(), options.retain_graph);
}

Tensor Tensor::to(Device device) const {
  const OperationTimer timer("to");
  return record("to", value_.to(device), {*this},
                [home = value_.device()](const Array& dy) { return Gradients{dy.to(home)}; });
}

void Tensor::assign(const Tensor& values) {
  const OperationTimer timer("assign");
  check(is_leaf() || !recording(),
        "assign: this tensor is the result of {}; assign to a detached copy",
        node_ ? node_->name : "");
  check_alike("assign", *this, values);
  on_device(device(), [&](auto on) { backend::copy(on, value_, values.value()); });
  value_.mark_changed();
}

void Tensor::add_in_place(const Tensor& values) {
  const OperationTimer timer("add_in_place");
  check_alike("add_in_place", *this, values);
  check(!values.needs_grad() || !recording(),
        "add_in_place: the values added need a gradient, which would be lost; use +");
  on_device(device(), [&](auto on) { backend::accumulate(on, value_, values.value()); });
  value_.mark_changed();
}

std::string Tensor::text() const {
  if (!defined()) return "undefined tensor";
  std::string text;
  append_rows(text, values<double>(), shape(), 0, 0);
  return text + fmt::format(" {} {}", shape(), dtype());
}

Tensor record_node(const char* name, Array y, std::span<const Tensor> inputs, Backward backward) {
  check_finite(name, y);
  bool needed = false;
  for (const Tensor& input : inputs) needed |= input.needs_grad();
  if (!needed || !recording()) return Tensor(std::move(y));
  auto node = std::make_shared<Node>(name, y);
  node->inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) node->inputs.push_back(input.node());
  node->backward = std::move(backward);
  return Tensor(std::move(y), std::move(node));
}

void refuse_gradient(const char* name, std::initializer_list<Tensor> inputs) {
  for (const Tensor& input : inputs) {
    check(!input.needs_grad() || !recording(),
          "{}: has no gradient, and an input needs one; detach it first", name);
  }
}

}  // namespace gs
