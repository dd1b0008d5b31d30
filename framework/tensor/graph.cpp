#include "framework/tensor/graph.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>

#include "framework/backend/copy.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

std::atomic<uint64_t> next_sequence{0};
std::atomic<uint64_t> next_visit{0};
std::atomic<int64_t> node_count{0};
thread_local bool is_recording = true;
thread_local bool finds_anomalies = false;
thread_local const Node* running = nullptr;  // whose backward function is being called

// Every node from which `root` was computed, newest first. The handles keep them alive while the
// pass frees the graph behind it.
std::vector<std::shared_ptr<Node>> reachable(const std::shared_ptr<Node>& root) {
  const uint64_t visit = ++next_visit;
  std::vector<std::shared_ptr<Node>> nodes{root};
  root->visit = visit;
  for (size_t i = 0; i < nodes.size(); ++i) {
    check(!nodes[i]->consumed,
          "backward: the graph of {} was freed by an earlier backward; retain the graph there, or "
          "compute the loss "
          "again",
          nodes[i]->name);
    for (const auto& input : nodes[i]->inputs) {
      if (input == nullptr || input->visit == visit) continue;
      input->visit = visit;
      nodes.push_back(input);
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const auto& a, const auto& b) { return a->sequence > b->sequence; });
  return nodes;
}

// target += gradient; memory that somebody else sees is never written.
void add(Array& target, const Array& gradient) {
  if (!target.defined()) {
    target = gradient;
    return;
  }
  if (!target.sole()) target = target.clone();
  on_device(target.device(), [&](auto on) { backend::accumulate(on, target, gradient); });
}

void check_gradient(const Node& node, size_t index, const Node& input, const Array& gradient) {
  check(gradient.defined(), "backward of {}: no gradient for input {}, which needs one", node.name,
        index);
  check(gradient.shape() == input.shape && gradient.dtype() == input.dtype &&
            gradient.device() == input.device,
        "backward of {}: the gradient of input {} must be {} {} on {}, got {} {} on {}", node.name,
        index, input.shape, input.dtype, input.device, gradient.shape(), gradient.dtype(),
        gradient.device());
}

void run_hooks(Node& node) {
  for (const auto& hook : node.hooks) {
    const Array changed = hook(node.pending);
    if (!changed.defined()) continue;
    check(changed.shape() == node.shape && changed.dtype() == node.dtype &&
              changed.device() == node.device,
          "gradient hook of {}: must return {} {} on {}, got {} {} on {}", node.name, node.shape,
          node.dtype, node.device, changed.shape(), changed.dtype(), changed.device());
    node.pending = changed;
  }
}

// Calls the node's backward function and hands the gradients to its inputs.
void propagate(Node& node, bool last) {
  running = &node;
  const Needs needs(node.inputs, last);
  const Gradients gradients = [&] {
    const OperationTimer timer(node.name.c_str(), Phase::kBackward);
    return node.backward(node.pending, needs);
  }();
  running = nullptr;
  check(gradients.size() == node.inputs.size(), "backward of {}: must return {} gradients, got {}",
        node.name, node.inputs.size(), gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    Node* input = node.inputs[i].get();
    if (input == nullptr) continue;
    check_gradient(node, i, *input, gradients[i]);
    if (finds_anomalies)
      check_finite(fmt::format("the gradient of {} for its input {}", node.name, i), gradients[i]);
    if (needs.has_taken_sum(i) && gradients[i].shares_memory(input->pending)) continue;
    add(input->pending, gradients[i]);
  }
}

// One step of the pass: the gradient of this node is complete.
void visit(Node& node, bool retain_graph) {
  if (!node.pending.defined()) return;
  run_hooks(node);
  if (node.leaf) return;
  node.consumed = !retain_graph;  // an error on the way does not bring back what was given away
  propagate(node, !retain_graph);
  if (!node.keeps_gradient) node.pending = Array();
  if (retain_graph) return;
  node.backward = nullptr;
  node.inputs.clear();
}

// Adds what has arrived to the kept gradient, which is then in memory of its own: optimizers and
// users may change it in place.
void keep(Node& node) {
  if (!node.pending.defined()) return;
  add(node.gradient, node.pending);
  node.pending = Array();
  if (!node.gradient.sole()) node.gradient = node.gradient.clone();
}

// Drops the gradients in flight however the pass ends.
struct PendingGradients {
  const std::vector<std::shared_ptr<Node>>& nodes;
  ~PendingGradients() {
    running = nullptr;
    for (const auto& node : nodes) node->pending = Array();
  }
};

void warn_when_nodes_grow() {
  static std::atomic<int64_t> last{0};
  static std::atomic<int> growing{0};
  constexpr int kPatience = 32;
  const int64_t now = live_nodes();
  growing = now > last ? growing + 1 : 0;
  last = now;
  if (growing == kPatience) {
    std::fprintf(stderr,
                 "gradstone: recorded operations have grown over %d backward passes, to %lld; keep "
                 "numbers with item() "
                 "instead of tensors\n",
                 kPatience, static_cast<long long>(now));
  }
}

std::string place_of(int64_t element, const Shape& shape) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) {
    place[static_cast<size_t>(d)] = element % shape[d];
    element /= shape[d];
  }
  return Shape(place).text();
}

}  // namespace

Node::Node(std::string name, const Array& output)
    : name(std::move(name)),
      sequence(++next_sequence),
      shape(output.shape()),
      dtype(output.dtype()),
      device(output.device()) {
  ++node_count;
}

// Without recursion: a chain of a million operations must fit on any stack.
Node::~Node() {
  --node_count;
  std::vector<std::shared_ptr<Node>> rest = std::move(inputs);
  while (!rest.empty()) {
    const std::shared_ptr<Node> node = std::move(rest.back());
    rest.pop_back();
    if (node == nullptr || node.use_count() > 1) continue;
    rest.insert(rest.end(), std::make_move_iterator(node->inputs.begin()),
                std::make_move_iterator(node->inputs.end()));
    node->inputs.clear();
  }
}

Array Needs::take_sum(size_t input) const {
  constexpr size_t kBits = 64;
  const Node* const node = inputs_[input].get();
  if (node == nullptr || input >= kBits || !node->pending.defined() || !node->pending.sole())
    return Array();
  taken_ |= uint64_t{1} << input;
  return node->pending;
}

const Array& Saved::value() const {
  if (!value_.defined()) return value_;
  check(value_.version() == version_,
        "backward of {}: a value {} {} that its gradient needs was changed in place, version {} "
        "then and {} now; "
        "change a copy, or run backward first",
        running == nullptr ? "?" : running->name, value_.shape(), value_.dtype(), version_,
        value_.version());
  return value_;
}

void run_backward(const std::shared_ptr<Node>& root, const Array& upstream, bool retain_graph) {
  const OperationTimer timer("backward", Phase::kBackward);  // what no operation inside takes
  const NoGrad no_grad;
  {
    const std::vector<std::shared_ptr<Node>> nodes = reachable(root);
    const PendingGradients cleanup{nodes};
    root->pending = upstream;
    for (const auto& node : nodes) visit(*node, retain_graph);
    for (const auto& node : nodes) keep(*node);
  }
  warn_when_nodes_grow();
}

bool recording() { return is_recording; }

NoGrad::NoGrad() : before_(is_recording) { is_recording = false; }
NoGrad::~NoGrad() { is_recording = before_; }

AnomalyMode::AnomalyMode() : before_(finds_anomalies) { finds_anomalies = true; }
AnomalyMode::~AnomalyMode() { finds_anomalies = before_; }

void check_finite(const std::string& what, const Array& values) {
  if (!finds_anomalies) return;
  const int64_t index =
      on_device(values.device(), [&](auto on) { return backend::first_non_finite(on, values); });
  if (index < 0) return;
  const std::vector<double> all = values.values<double>();
  fail("anomaly: {} is {} at element {} of {}", what, all[static_cast<size_t>(index)],
       place_of(index, values.shape()), values.shape());
}

int64_t live_nodes() { return node_count; }

}  // namespace gs
