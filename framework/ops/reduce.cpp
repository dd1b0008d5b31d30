#include "framework/ops/reduce.h"

#include <algorithm>

#include "framework/backend/broadcast.h"
#include "framework/backend/reduce.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/reduction.h"

namespace gs {
namespace {

void check_not_empty(const char* operation, const Reduction& reduction) {
  check(reduction.rows.length > 0, "{}: there is nothing to choose from, got shape {}", operation,
        reduction.from);
}

// The sum divided by `divisor`.
Tensor scaled_sum(const char* name, const Tensor& x, const Reduction& reduction, double divisor) {
  Array y = Array::empty(reduction.result, x.dtype(), x.device());
  const Array values = reduction.arranged(x.value());
  on_device(x.device(), [&](auto on) { backend::sum(on, y, values, reduction.rows, divisor); });
  // dx = dy / divisor, repeated along what was reduced
  return record(
      name, y, {x}, [from = reduction.from, kept = reduction.kept, divisor](const Array& dy) {
        Array dx = Array::empty(from, dy.dtype(), dy.device());
        on_device(dy.device(),
                  [&](auto on) { backend::broadcast(on, dx, dy.reshaped(kept), 1 / divisor); });
        return Gradients{dx};
      });
}

// Runs a backward kernel on x, which it reads as rows, and gives dx in x's shape.
template <typename Kernel>
Gradients row_gradient(const Reduction& reduction, const Array& x, Kernel kernel) {
  const Array values = reduction.arranged(x);
  Array dx = Array::like(values);
  on_device(x.device(), [&](auto on) { kernel(on, dx, values); });
  return {reduction.restored(dx)};
}

template <typename Kernel>
Tensor extremum(const char* name, const Tensor& x, const ReduceOptions& options, Kernel kernel) {
  const OperationTimer timer(name);
  check_floating(name, x);
  const Reduction reduction(name, x.shape(), options.dimensions, options.keep);
  check_not_empty(name, reduction);
  Array y = Array::empty(reduction.result, x.dtype(), x.device());
  const Array values = reduction.arranged(x.value());
  on_device(x.device(), [&](auto on) { kernel(on, y, values, reduction.rows); });
  // dx = dy / n for the n elements that equal y, else 0
  return record(name, y, {x}, [reduction, x = Saved(x.value()), y = Saved(y)](const Array& dy) {
    return row_gradient(reduction, x.value(), [&](auto on, Array& dx, const Array& values) {
      backend::extremum_backward(on, dx, dy, values, y.value(), reduction.rows);
    });
  });
}

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& options) {
  const OperationTimer timer("sum");
  check_floating("sum", x);
  return scaled_sum("sum", x, Reduction("sum", x.shape(), options.dimensions, options.keep), 1);
}

Tensor mean(const Tensor& x, const ReduceOptions& options) {
  const OperationTimer timer("mean");
  check_floating("mean", x);
  const Reduction reduction("mean", x.shape(), options.dimensions, options.keep);
  return scaled_sum("mean", x, reduction, static_cast<double>(reduction.rows.length));
}

Tensor variance(const Tensor& x, const VarianceOptions& options) {
  const OperationTimer timer("variance");
  check_floating("variance", x);
  const Reduction reduction("variance", x.shape(), options.dimensions, options.keep);
  const Rows rows = reduction.rows;
  const double divisor =
      static_cast<double>(std::max<int64_t>(0, rows.length - (options.unbiased ? 1 : 0)));
  Array y = Array::empty(reduction.result, x.dtype(), x.device());
  Array mean = Array::empty(reduction.result, kFloat64, x.device());
  const Array values = reduction.arranged(x.value());
  on_device(x.device(), [&](auto on) { backend::variance(on, y, mean, values, rows, divisor); });
  // dx = dy * 2 (x - mean) / divisor
  return record(
      "variance", y, {x}, [reduction, divisor, mean, x = Saved(x.value())](const Array& dy) {
        return row_gradient(reduction, x.value(), [&](auto on, Array& dx, const Array& values) {
          backend::variance_backward(on, dx, dy, values, mean, reduction.rows, divisor);
        });
      });
}

Tensor logsumexp(const Tensor& x, const ReduceOptions& options) {
  const OperationTimer timer("logsumexp");
  check_floating("logsumexp", x);
  const Reduction reduction("logsumexp", x.shape(), options.dimensions, options.keep);
  Array y = Array::empty(reduction.result, x.dtype(), x.device());
  const Array values = reduction.arranged(x.value());
  on_device(x.device(), [&](auto on) { backend::logsumexp(on, y, values, reduction.rows); });
  // dx = dy * e^(x - y)
  return record(
      "logsumexp", y, {x}, [reduction, x = Saved(x.value()), y = Saved(y)](const Array& dy) {
        return row_gradient(reduction, x.value(), [&](auto on, Array& dx, const Array& values) {
          backend::logsumexp_backward(on, dx, dy, values, y.value(), reduction.rows);
        });
      });
}

Tensor max(const Tensor& x, const ReduceOptions& options) {
  return extremum("max", x, options, [](auto on, Array& y, const Array& values, Rows rows) {
    backend::max(on, y, values, rows);
  });
}

Tensor min(const Tensor& x, const ReduceOptions& options) {
  return extremum("min", x, options, [](auto on, Array& y, const Array& values, Rows rows) {
    backend::min(on, y, values, rows);
  });
}

Tensor argmax(const Tensor& x, const ReduceOptions& options) {
  const OperationTimer timer("argmax");
  check(is_computable(x) || x.dtype() == kInt32,
        "argmax: needs float32, float64 or int32, got {}; cast it first", x.dtype());
  check(options.dimensions.size() <= 1, "argmax: takes one dimension or none, got {}",
        options.dimensions.size());
  const Reduction reduction("argmax", x.shape(), options.dimensions, options.keep);
  check_not_empty("argmax", reduction);
  check(reduction.rows.length <= INT32_MAX, "argmax: places must fit int32, got shape {}",
        x.shape());
  Array y = Array::empty(reduction.result, kInt32, x.device());
  const Array values = x.dtype() == kInt32 ? x.value().to(kFloat64) : x.value();
  on_device(x.device(), [&](auto on) { backend::argmax(on, y, values, reduction.rows); });
  return Tensor(y);
}

}  // namespace gs
