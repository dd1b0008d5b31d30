#include "tests/support/operation_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/core/profiler.h"
#include "framework/core/random.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/devices.h"

namespace gs::test {
namespace {

using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

bool near(double actual, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// Bits, but for the sign of NaN.
bool same(const Values& a, const Values& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
  });
}

// The outcome of one run forwards and backwards.
struct Run {
  Tensor y;
  Tensors gradients;  // one an input, undefined where none is collected
};

// Everything that is checked of one operation, each with its own fresh inputs.
class Checks {
 public:
  Checks(const Operation& operation, const Tensors& inputs, const Reference& reference,
         const OperationOptions& options, Device device = Device::cpu())
      : operation_(operation), reference_(reference), options_(options), device_(device) {
    for (const Tensor& input : inputs) {
      const bool floating = is_floating(input.dtype());
      inputs_.push_back(floating ? Tensor(input.value().to(kFloat32)) : input.detach());
      any_floating_ |= floating;
    }
  }

  std::vector<std::string> run() {
    check_values();
    check_without_gradient();
    check_profile();
    if (options_.has_gradient && any_floating_) {
      check_gradients();
      check_single_precision();
      check_each_gradient_alone();
      check_all_changes_in_place();
    }
    return std::move(faults_);
  }

  // On another device what `on_cpu` computes is the reference, which spares the differences.
  std::vector<std::string> run_against(const Checks& on_cpu) {
    check_values();
    check_without_gradient();
    compare_runs(kFloat64, on_cpu, 1e-10);
    compare_runs(kFloat32, on_cpu, options_.float_tolerance);
    if (options_.has_gradient && any_floating_) {
      check_each_gradient_alone();
      check_all_changes_in_place();
    }
    return std::move(faults_);
  }

 private:
  template <typename... Arguments>
  void fault(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    faults_.push_back(fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  // Own copies of the inputs; those in `leaves` (all if -1) collect gradients.
  Tensors fresh(DType dtype, int leaf = -1) const {
    Tensors result;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool floating = is_floating(inputs_[i].dtype());
      Tensor copy((floating ? inputs_[i].value().to(dtype) : inputs_[i].value()).to(device_));
      if (floating && options_.has_gradient && (leaf < 0 || leaf == static_cast<int>(i)))
        copy.set_needs_grad();
      result.push_back(copy);
    }
    return result;
  }

  // Numbers away from 0 that float32 holds.
  static Tensor upstream_of(const Tensor& y) {
    Values values;
    const RandomStream stream{11, 3};
    for (int64_t i = 0; i < y.elements(); ++i) {
      const auto words = stream.words(static_cast<uint64_t>(i));
      const double size = 0.25 + 0.75 * unit_float(words[0]);
      values.push_back(static_cast<double>(static_cast<float>(words[1] & 1 ? size : -size)));
    }
    return Tensor(Array::of<double>(y.shape(), values).to(y.dtype()).to(y.device()));
  }

  static Run collect(const Tensor& y, const Tensors& inputs) {
    Run result{y.detach(), {}};
    for (const Tensor& input : inputs) result.gradients.push_back(input.gradient());
    return result;
  }

  Run run_once(DType dtype, int leaf = -1) const {
    const Tensors inputs = fresh(dtype, leaf);
    const Tensor y = operation_(inputs);
    if (y.needs_grad()) y.backward(upstream_of(y));
    return collect(y, inputs);
  }

  void compare(const std::string& what, const Values& actual, const Values& expected,
               double tolerance) {
    if (actual.size() != expected.size())
      return fault("{} has {} elements, expected {}", what, actual.size(), expected.size());
    size_t worst = actual.size(), count = 0;
    double error = -1;
    for (size_t i = 0; i < actual.size(); ++i) {
      if (near(actual[i], expected[i], tolerance)) continue;
      ++count;
      const double size = std::abs(actual[i] - expected[i]);
      if (worst < actual.size() && !(size > error)) continue;
      worst = i;
      error = size;
    }
    if (count == 0) return;
    fault("{}: {} of {} elements differ, worst is element {}: {:.12g}, expected {:.12g}", what,
          count, actual.size(), worst, actual[worst], expected[worst]);
  }

  void check_values() {
    const Tensor y = run_once(kFloat64).y;
    if (!reference_) return;
    std::vector<Values> values;
    for (const Tensor& input : inputs_) values.push_back(input.values<double>());
    compare("float64 result", y.values<double>(), reference_(values), options_.value_tolerance);
  }

  // Nothing is recorded without need, inputs are only read, and nothing stays behind.
  void check_without_gradient() {
    const int64_t nodes = live_nodes(), bytes = memory_figures(device_).live;
    {
      const NoGrad no_grad;
      const Tensors inputs = fresh(kFloat32);
      const int64_t with_leaves = live_nodes();
      const Tensor y = operation_(inputs);
      if (live_nodes() != with_leaves || y.needs_grad()) fault("recorded in spite of NoGrad");
    }
    {
      const Tensors inputs = fresh(kFloat64);
      const Tensor y = operation_(inputs);
      if (y.needs_grad()) {
        const Tensor upstream = upstream_of(y);
        const Values before = upstream.values<double>();
        y.backward(upstream);
        if (!same(before, upstream.values<double>()))
          fault("backward changed its upstream gradient");
      }
      for (size_t i = 0; i < inputs.size(); ++i)
        if (!same(inputs_[i].values<double>(), inputs[i].values<double>()))
          fault("input {} was changed", i);
    }
    if (live_nodes() != nodes) fault("{} nodes are left alive", live_nodes() - nodes);
    if (memory_figures(device_).live != bytes)
      fault("{} bytes are left alive", memory_figures(device_).live - bytes);
  }

  // Whatever runs backward is timed under the same name when it runs forward.
  void check_profile() {
    start_profiling();
    const Run run = run_once(kFloat32);
    const Profile profile = stop_profiling();
    for (const Profile::Operation& operation : profile.operations) {
      if (operation.name != "backward" &&
          operation[Phase::kForward].calls < operation[Phase::kBackward].calls)
        fault("{} has no OperationTimer of that name", operation.name);
    }
  }

  void check_gradients() {
    Tensors inputs;
    int64_t elements = 0;
    for (const Tensor& input : inputs_) {
      inputs.push_back(is_floating(input.dtype()) ? Tensor(input.value().to(kFloat64)) : input);
      if (is_floating(input.dtype())) elements += input.elements();
    }
    const Run run = run_once(kFloat64);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& gradient = run.gradients[i];
      if (!is_floating(inputs[i].dtype())) continue;
      if (!gradient.defined()) {
        fault("input {} got no gradient", i);
      } else if (gradient.shape() != inputs[i].shape() || gradient.dtype() != kFloat64) {
        fault("gradient of input {} is {} {}, expected {} float64", i, gradient.shape(),
              gradient.dtype(), inputs[i].shape());
      }
    }
    const GradcheckResult result =
        gradcheck(operation_, inputs, {.tolerance = options_.gradient_tolerance});
    if (!result.passed) fault("gradcheck: {}", result.message);
    if (!options_.has_kinks && !result.kinks.empty()) fault("gradcheck: {}", result.kinks.front());
    if (elements > 0 && result.checked == 0) fault("gradcheck compared no element");
  }

  void check_single_precision() {
    const Run single = run_once(kFloat32), twofold = run_once(kFloat64);
    const DType expected = is_floating(twofold.y.dtype()) ? kFloat32 : twofold.y.dtype();
    if (single.y.dtype() != expected)
      fault("float32 inputs give {}, expected {}", single.y.dtype(), expected);
    if (single.y.shape() != twofold.y.shape())
      fault("float32 result is {}, float64 is {}", single.y.shape(), twofold.y.shape());
    compare("float32 result", single.y.values<double>(), twofold.y.values<double>(),
            options_.float_tolerance);
    for (size_t i = 0; i < single.gradients.size(); ++i) {
      const Tensor &actual = single.gradients[i], &wanted = twofold.gradients[i];
      if (actual.defined() != wanted.defined()) {
        fault("input {} has a gradient in one precision only", i);
      } else if (actual.defined()) {
        if (actual.dtype() != kFloat32) fault("float32 gradient of input {} has another type", i);
        compare(fmt::format("float32 gradient of input {}", i), actual.values<double>(),
                wanted.values<double>(), options_.float_tolerance);
      }
    }
  }

  // The result and all gradients as on the CPU, in the same type and on this device.
  void compare_runs(DType dtype, const Checks& on_cpu, double tolerance) {
    const Run here = run_once(dtype), there = on_cpu.run_once(dtype);
    const std::string precision = name_of(dtype);
    compare_tensors(precision + " result", here.y, there.y, tolerance);
    for (size_t i = 0; i < here.gradients.size(); ++i) {
      compare_tensors(fmt::format("{} gradient of input {}", precision, i), here.gradients[i],
                      there.gradients[i], tolerance);
    }
  }

  void compare_tensors(const std::string& what, const Tensor& here, const Tensor& there,
                       double tolerance) {
    if (here.defined() != there.defined())
      return fault("{} is there on {} alone", what,
                   here.defined() ? here.device() : there.device());
    if (!here.defined()) return;
    if (here.device() != device_) fault("{} is on {}", what, here.device());
    if (here.shape() != there.shape() || here.dtype() != there.dtype())
      return fault("{} is {} {}, on the CPU {} {}", what, here.shape(), here.dtype(), there.shape(),
                   there.dtype());
    compare(what, here.values<double>(), there.values<double>(), tolerance);
  }

  // Gradients that nobody needs are left out; this must not change the others.
  void check_each_gradient_alone() {
    const Run all = run_once(kFloat64);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!all.gradients[i].defined()) continue;
      const Run alone = run_once(kFloat64, static_cast<int>(i));
      if (!alone.gradients[i].defined()) {
        fault("input {} got no gradient when it alone needs one", i);
        continue;
      }
      compare(fmt::format("gradient of input {} alone", i), alone.gradients[i].values<double>(),
              all.gradients[i].values<double>(), 1e-12);
    }
  }

  void check_all_changes_in_place() {
    for (size_t i = 0; i <= inputs_.size(); ++i) check_change_in_place(i);
  }

  // After the forward pass changes input number `changed`, or the result for the number after the
  // last. What matters is that no gradient is wrong in silence.
  void check_change_in_place(size_t changed) {
    const Run expected = run_once(kFloat64);
    const Tensors inputs = fresh(kFloat64);
    const Tensor y = operation_(inputs);
    if (!y.needs_grad()) return;
    const bool is_result = changed == inputs.size();
    const std::string what = is_result ? "the result" : fmt::format("input {}", changed);
    Tensor target = (is_result ? y : inputs[changed]).detach();
    if (is_floating(target.dtype())) {
      target.add_in_place(Tensor(Array::full(target.shape(), 0.75, target.dtype(), device_)));
    } else {
      target.assign(Tensor(Array::zeros(target.shape(), target.dtype(), device_)));
    }
    try {
      y.backward(upstream_of(y));
    } catch (const Error&) {
      for (const Tensor& input : inputs)
        if (input.gradient().defined()) fault("a refused backward left a gradient behind");
      return;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (expected.gradients[i].defined() &&
          !same(inputs[i].gradient().values<double>(), expected.gradients[i].values<double>()))
        fault("changing {} in place made the gradient of input {} wrong in silence", what, i);
    }
  }

  const Operation& operation_;
  const Reference reference_;
  const OperationOptions& options_;
  const Device device_;
  Tensors inputs_;  // on the CPU, floating ones in float32
  bool any_floating_ = false;
  std::vector<std::string> faults_;
};

void report(const std::string& name, const Tensors& inputs,
            const std::vector<std::string>& faults) {
  std::string shapes;
  for (const Tensor& input : inputs) shapes += fmt::format(" {} {}", input.shape(), input.dtype());
  for (const std::string& fault : faults) ADD_FAILURE() << name << " of" << shapes << ": " << fault;
}

}  // namespace

std::vector<std::string> faults_of_operation(const Operation& operation, const Tensors& inputs,
                                             const Reference& reference,
                                             const OperationOptions& options) {
  return Checks(operation, inputs, reference, options).run();
}

std::vector<std::string> faults_on_cuda(const Operation& operation, const Tensors& inputs,
                                        const Reference& reference,
                                        const OperationOptions& options) {
  return Checks(operation, inputs, reference, options, Device::cuda())
      .run_against(Checks(operation, inputs, reference, options));
}

void check_on_cuda(const std::string& name, const Operation& operation, const Tensors& inputs,
                   const OperationOptions& options) {
  report(name + " on CUDA", inputs, faults_on_cuda(operation, inputs, {}, options));
}

void check_operation(const std::string& name, const Operation& operation, const Tensors& inputs,
                     const Reference& reference, const OperationOptions& options) {
  report(name, inputs, faults_of_operation(operation, inputs, reference, options));
  if (!reason_without_cuda().empty()) return;
  report(name + " on CUDA", inputs, faults_on_cuda(operation, inputs, reference, options));
}

}  // namespace gs::test
