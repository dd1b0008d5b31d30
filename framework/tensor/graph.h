#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/backend/array.h"

namespace gs {

// The gradients that a backward function returns, one an input of the operation, in its order;
// an undefined Array where none is needed.
using Gradients = std::vector<Array>;

// What a backward function is to do: which inputs of the operation need a gradient (the others need
// not be computed), and whether it is called for the last time, so that it may give away what it
// keeps.
class Needs {
 public:
  Needs(std::span<const std::shared_ptr<struct Node>> inputs, bool last)
      : inputs_(inputs), last_(last) {}
  bool operator[](size_t input) const { return inputs_[input] != nullptr; }
  bool last() const { return last_; }
  // The sum of the gradients that have already arrived at an input: a function that takes it adds
  // its own in place and returns it, which saves a pass over memory. Undefined where nothing has
  // arrived, or others see that memory: then a new array is to be returned.
  Array take_sum(size_t input) const;
  bool has_taken_sum(size_t input) const { return (taken_ >> input & 1) != 0; }

 private:
  std::span<const std::shared_ptr<struct Node>> inputs_;
  bool last_;
  mutable uint64_t taken_ = 0;  // a bit an input
};

// From the gradient of an operation's output to those of its inputs. It keeps Arrays (as Saved)
// and numbers, never Tensors, so that no cycle can form.
using Backward = std::function<Gradients(const Array& dy, const Needs& needs)>;

// One operation of the recorded graph, or a leaf: a tensor that collects gradients.
struct Node {
  Node(std::string name, const Array& output);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  bool is_leaf() const { return leaf; }

  const std::string name;
  const uint64_t sequence;  // later operations have larger numbers
  const Shape shape;        // of the output
  const DType dtype;
  const Device device;
  bool leaf = false;
  bool keeps_gradient = false;  // leaves always do
  bool consumed = false;        // its backward has run and was freed
  Backward backward;
  std::vector<std::shared_ptr<Node>> inputs;  // null where no gradient is needed
  std::vector<std::function<Array(const Array&)>> hooks;
  Array gradient;  // kept
  Array pending;   // of the backward that is running
  uint64_t visit = 0;
};

// An Array kept for the backward. Reading it fails when its memory was changed in the meantime.
class Saved {
 public:
  Saved() = default;
  Saved(const Array& value) : value_(value), version_(value.defined() ? value.version() : 0) {}
  bool defined() const { return value_.defined(); }
  const Array& value() const;

 private:
  Array value_;
  uint64_t version_ = 0;
};

// Runs the graph from `root` backwards, newest operation first, with `upstream` as the gradient of
// its output. Gradients of leaves are added to what they hold, all of them or, on an error, none.
// Without `retain_graph` what has run is freed.
void run_backward(const std::shared_ptr<Node>& root, const Array& upstream, bool retain_graph);

// Whether operations are recorded in this thread.
bool recording();

// No operation is recorded while one of these lives in the thread.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

// While one of these lives in the thread, every result and every gradient is searched for infinity
// and NaN; the first one found is an error that names the operation and the element.
class AnomalyMode {
 public:
  AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;

 private:
  bool before_;
};

// In anomaly mode: refuses values that are not finite. `what` says whose they are.
void check_finite(const std::string& what, const Array& values);

// The recorded operations that are alive. Constant from step to step in a healthy loop; a loop
// that keeps tensors where numbers would do makes it grow, and then one warning is printed.
int64_t live_nodes();

}  // namespace gs
