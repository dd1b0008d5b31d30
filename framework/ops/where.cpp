#include "framework/ops/where.h"

#include "framework/backend/sum_to.h"
#include "framework/backend/where.h"
#include "framework/core/profiler.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

using backend::Operand;

void check_condition(const char* name, const Tensor& condition, const Tensor& x) {
  check_operand(name, condition);
  check_operand(name, x);
  check(condition.dtype() == kBool,
        "{}: the condition must be bool, got {}; compare it with 0 first", name, condition.dtype());
  check(condition.device() == x.device(), "{}: the condition is on {}, the values on {}; move one",
        name, condition.device(), x.device());
}

// The gradient of one side: dy where it was chosen, summed to the side's shape.
Array gradient_of(bool side, const Array& condition, const Shape& shape, const Array& dy) {
  Array dx = Array::like(dy);
  on_device(dy.device(), [&](auto on) {
    const Operand taken(dy), zero(0.0);
    backend::where(on, dx, condition, side ? taken : zero, side ? zero : taken);
    if (shape == dy.shape()) return;
    const Array whole = dx;
    dx = Array::empty(shape, dy.dtype(), dy.device());
    backend::sum_to(on, dx, whole);
  });
  return dx;
}

// x where the condition equals `side`, else the number.
Tensor choose(const char* name, const Shape& shape, const Tensor& condition, bool side,
              const Tensor& x, double number) {
  const OperationTimer timer(name);
  check_number(name, x, number);
  Array y = Array::empty(shape, x.dtype(), x.device());
  on_device(x.device(), [&](auto on) {
    const Operand tensor(x.value()), constant(number);
    backend::where(on, y, condition.value(), side ? tensor : constant, side ? constant : tensor);
  });
  return record(name, y, {x},
                [condition = Saved(condition.value()), side, shape = x.shape()](const Array& dy) {
                  return Gradients{gradient_of(side, condition.value(), shape, dy)};
                });
}

Tensor where_number(const Tensor& condition, bool side, const Tensor& x, double number) {
  check_condition("where", condition, x);
  const Shape shape = broadcast_shapes("where", condition.shape(), x.shape());
  return choose("where", shape, condition, side, x, number);
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  const OperationTimer timer("where");
  check_operands("where", a, b);
  check_condition("where", condition, a);
  const Shape shape =
      broadcast_shapes("where", condition.shape(), broadcast_shapes("where", a.shape(), b.shape()));
  Array y = Array::empty(shape, a.dtype(), a.device());
  on_device(a.device(),
            [&](auto on) { backend::where(on, y, condition.value(), a.value(), b.value()); });
  return record("where", y, {a, b},
                [condition = Saved(condition.value()), a_shape = a.shape(), b_shape = b.shape()](
                    const Array& dy, const Needs& needs) {
                  Gradients gradients(2);
                  const Array& chosen = condition.value();
                  if (needs[0]) gradients[0] = gradient_of(true, chosen, a_shape, dy);
                  if (needs[1]) gradients[1] = gradient_of(false, chosen, b_shape, dy);
                  return gradients;
                });
}

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  return where_number(condition, true, a, b);
}

Tensor where(const Tensor& condition, double a, const Tensor& b) {
  return where_number(condition, false, b, a);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  check_condition("masked_fill", mask, x);
  check(broadcast_shapes("masked_fill", x.shape(), mask.shape()) == x.shape(),
        "masked_fill: the mask must broadcast to x, got {} and {}; use where", mask.shape(),
        x.shape());
  return choose("masked_fill", x.shape(), mask, false, x, value);
}

}  // namespace gs
