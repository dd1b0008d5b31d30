#include "framework/ops/unary.h"

#include "framework/backend/unary.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

using backend::Kept;
using backend::Unary;

Tensor compute(const char* name, Unary function, const Tensor& x) {
  check_operand(name, x);
  check(is_floating(x.dtype()), "{}: needs float32 or float64, got {}; cast it first", name,
        x.dtype());
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::unary(on, function, y, x.value()); });
  const Kept kept = backend::kept_for_gradient(function);
  return record(name, y, {x},
                [function, kept = Saved(kept == Kept::kOutput ? y : x.value())](const Array& dy) {
                  Array dx = Array::like(dy);
                  on_device(dy.device(), [&](auto on) {
                    backend::unary_gradient(on, function, dx, kept.value(), dy);
                  });
                  return Gradients{dx};
                });
}

}  // namespace

Tensor relu(const Tensor& x) { return compute("relu", Unary::kRelu, x); }
Tensor gelu(const Tensor& x) { return compute("gelu", Unary::kGelu, x); }

}  // namespace gs
