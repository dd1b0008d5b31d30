#include "framework/ops/comparison.h"

#include "framework/backend/comparison.h"
#include "framework/core/profiler.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

using backend::Comparison;
using backend::Logical;

Tensor compute(const char* name, Comparison comparison, const Tensor& a, const Tensor& b) {
  const OperationTimer timer(name);
  check_operands(name, a, b);
  Array y = Array::empty(broadcast_shapes(name, a.shape(), b.shape()), kBool, a.device());
  on_device(a.device(),
            [&](auto on) { backend::compare(on, comparison, y, a.value(), b.value(), a.dtype()); });
  return Tensor(y);
}

Tensor compute(const char* name, Comparison comparison, const Tensor& a, double b) {
  const OperationTimer timer(name);
  check_operand(name, a);
  check(a.dtype() != kBool,
        "{}: a bool tensor does not compare with a number, got {}; use "
        "logical_not or cast it first",
        name, b);
  check_number(name, a, b);
  Array y = Array::empty(a.shape(), kBool, a.device());
  on_device(a.device(),
            [&](auto on) { backend::compare(on, comparison, y, a.value(), b, a.dtype()); });
  return Tensor(y);
}

void check_bool(const char* name, const Tensor& x) {
  check_operand(name, x);
  check(x.dtype() == kBool, "{}: needs bool, got {}; compare it with 0 first", name, x.dtype());
}

Tensor compute(const char* name, Logical operation, const Tensor& a, const Tensor& b) {
  const OperationTimer timer(name);
  check_bool(name, a);
  check_bool(name, b);
  check_operands(name, a, b);
  Array y = Array::empty(broadcast_shapes(name, a.shape(), b.shape()), kBool, a.device());
  on_device(a.device(), [&](auto on) { backend::logical(on, operation, y, a.value(), b.value()); });
  return Tensor(y);
}

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) {
  return compute("equal", Comparison::kEqual, a, b);
}
Tensor equal(const Tensor& a, double b) { return compute("equal", Comparison::kEqual, a, b); }

Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compute("not_equal", Comparison::kNotEqual, a, b);
}
Tensor not_equal(const Tensor& a, double b) {
  return compute("not_equal", Comparison::kNotEqual, a, b);
}

Tensor less(const Tensor& a, const Tensor& b) { return compute("less", Comparison::kLess, a, b); }
Tensor less(const Tensor& a, double b) { return compute("less", Comparison::kLess, a, b); }

Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compute("less_equal", Comparison::kLessEqual, a, b);
}
Tensor less_equal(const Tensor& a, double b) {
  return compute("less_equal", Comparison::kLessEqual, a, b);
}

Tensor greater(const Tensor& a, const Tensor& b) {
  return compute("greater", Comparison::kGreater, a, b);
}
Tensor greater(const Tensor& a, double b) { return compute("greater", Comparison::kGreater, a, b); }

Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compute("greater_equal", Comparison::kGreaterEqual, a, b);
}
Tensor greater_equal(const Tensor& a, double b) {
  return compute("greater_equal", Comparison::kGreaterEqual, a, b);
}

Tensor logical_and(const Tensor& a, const Tensor& b) {
  return compute("logical_and", Logical::kAnd, a, b);
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return compute("logical_or", Logical::kOr, a, b);
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return compute("logical_xor", Logical::kXor, a, b);
}

Tensor logical_not(const Tensor& x) {
  const OperationTimer timer("logical_not");
  check_bool("logical_not", x);
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::logical(on, Logical::kXor, y, x.value(), 1.0); });
  return Tensor(y);
}

}  // namespace gs
