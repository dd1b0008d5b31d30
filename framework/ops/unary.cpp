#include "framework/ops/unary.h"

#include "framework/backend/unary.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

using backend::Kept;
using backend::Limits;
using backend::Unary;

Tensor compute(const char* name, Unary function, const Tensor& x, Limits limits = {}) {
  const OperationTimer timer(name);
  check_operand(name, x);
  check_floating(name, x);
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::unary(on, function, y, x.value(), limits); });
  const Kept what = backend::kept_for_gradient(function);
  const Saved kept = what == Kept::kInput    ? Saved(x.value())
                     : what == Kept::kOutput ? Saved(y)
                                             : Saved();
  return record(name, y, {x}, [function, limits, kept](const Array& dy) {
    Array dx = Array::like(dy);
    on_device(dy.device(), [&](auto on) {
      const Array& from = kept.defined() ? kept.value() : dy;
      backend::unary_gradient(on, function, dx, from, dy, limits);
    });
    return Gradients{dx};
  });
}

}  // namespace

Tensor negate(const Tensor& x) { return compute("negate", Unary::kNegate, x); }
Tensor exp(const Tensor& x) { return compute("exp", Unary::kExp, x); }
Tensor log(const Tensor& x) { return compute("log", Unary::kLog, x); }
Tensor sqrt(const Tensor& x) { return compute("sqrt", Unary::kSqrt, x); }
Tensor rsqrt(const Tensor& x) { return compute("rsqrt", Unary::kRsqrt, x); }
Tensor abs(const Tensor& x) { return compute("abs", Unary::kAbs, x); }
Tensor square(const Tensor& x) { return compute("square", Unary::kSquare, x); }
Tensor tanh(const Tensor& x) { return compute("tanh", Unary::kTanh, x); }
Tensor sigmoid(const Tensor& x) { return compute("sigmoid", Unary::kSigmoid, x); }
Tensor relu(const Tensor& x) { return compute("relu", Unary::kRelu, x); }
Tensor gelu(const Tensor& x) { return compute("gelu", Unary::kGelu, x); }
Tensor gelu_tanh(const Tensor& x) { return compute("gelu_tanh", Unary::kGeluTanh, x); }
Tensor silu(const Tensor& x) { return compute("silu", Unary::kSilu, x); }

Tensor clamp(const Tensor& x, double low, double high) {
  check(low <= high, "clamp: the lower limit must not be above the upper one, got {} and {}", low,
        high);
  return compute("clamp", Unary::kClamp, x, {.low = low, .high = high});
}

}  // namespace gs
