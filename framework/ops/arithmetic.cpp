#include "framework/ops/arithmetic.h"

#include "framework/backend/binary.h"
#include "framework/backend/scale.h"
#include "framework/backend/sum_to.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/operands.h"

namespace gs {
namespace {

using backend::Binary;
using backend::Operand;
using backend::Side;

void check_type(const char* name, Binary operation, const Tensor& x) {
  const bool whole = operation != Binary::kDivide && operation != Binary::kPow;
  check(is_computable(x) || (whole && x.dtype() == kInt32),
        "{}: needs float32{} float64{}, got {}; cast it first", name, whole ? "," : " or",
        whole ? " or int32" : "", x.dtype());
}

// An operand as the backward needs it; of a tensor that it does not read, the shape alone.
struct KeptOperand {
  Saved array = {};
  double number = 0;
  Shape shape = {};

  Operand operand() const { return array.defined() ? Operand(array.value()) : Operand(number); }
};

KeptOperand keep(const Tensor& x, bool read) {
  return {.array = read ? Saved(x.value()) : Saved(), .shape = x.shape()};
}

Array gradient_of(Binary operation, Side side, const KeptOperand& a, const KeptOperand& b,
                  const Array& dy) {
  const Shape& shape = side == Side::kA ? a.shape : b.shape;
  const bool negative = operation == Binary::kSubtract && side == Side::kB;
  const bool passes = operation == Binary::kAdd || operation == Binary::kSubtract;
  Array dx = dy;
  on_device(dy.device(), [&](auto on) {
    if (!passes) {
      dx = Array::like(dy);
      backend::binary_gradient(on, operation, side, dx, a.operand(), b.operand(), dy);
    }
    if (shape != dx.shape()) {
      const Array whole = dx;
      dx = Array::empty(shape, dy.dtype(), dy.device());
      backend::sum_to(on, dx, whole);
    }
    if (negative) {
      const Array positive = dx;
      dx = Array::like(positive);
      backend::scale(on, dx, positive, -1);
    }
  });
  return dx;
}

Tensor compute(const char* name, Binary operation, const Tensor& a, const Tensor& b) {
  const OperationTimer timer(name);
  check_operands(name, a, b);
  check_type(name, operation, a);
  Array y = Array::empty(broadcast_shapes(name, a.shape(), b.shape()), a.dtype(), a.device());
  on_device(a.device(), [&](auto on) { backend::binary(on, operation, y, a.value(), b.value()); });
  const backend::Reads for_a = backend::binary_gradient_reads(operation, Side::kA);
  const backend::Reads for_b = backend::binary_gradient_reads(operation, Side::kB);
  const bool reads_a = (a.needs_grad() && for_a.a) || (b.needs_grad() && for_b.a);
  const bool reads_b = (a.needs_grad() && for_a.b) || (b.needs_grad() && for_b.b);
  return record(
      name, y, {a, b},
      [operation, a = keep(a, reads_a), b = keep(b, reads_b)](const Array& dy, const Needs& needs) {
        Gradients gradients(2);
        if (needs[0]) gradients[0] = gradient_of(operation, Side::kA, a, b, dy);
        if (needs[1]) gradients[1] = gradient_of(operation, Side::kB, a, b, dy);
        return gradients;
      });
}

// `side` is the tensor's, the other operand is the number.
Tensor compute(const char* name, Binary operation, Side side, const Tensor& x, double number) {
  const OperationTimer timer(name);
  check_operand(name, x);
  check_type(name, operation, x);
  check_number(name, x, number);
  const bool is_a = side == Side::kA;
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) {
    const Operand tensor(x.value()), constant(number);
    backend::binary(on, operation, y, is_a ? tensor : constant, is_a ? constant : tensor);
  });
  const backend::Reads reads = backend::binary_gradient_reads(operation, side);
  return record(name, y, {x},
                [operation, side, x = keep(x, is_a ? reads.a : reads.b), number](const Array& dy) {
                  const KeptOperand constant{.number = number};
                  const bool is_a = side == Side::kA;
                  return Gradients{
                      gradient_of(operation, side, is_a ? x : constant, is_a ? constant : x, dy)};
                });
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return compute("add", Binary::kAdd, a, b); }
Tensor add(const Tensor& a, double b) { return compute("add", Binary::kAdd, Side::kA, a, b); }
Tensor add(double a, const Tensor& b) { return compute("add", Binary::kAdd, Side::kB, b, a); }

Tensor subtract(const Tensor& a, const Tensor& b) {
  return compute("subtract", Binary::kSubtract, a, b);
}
Tensor subtract(const Tensor& a, double b) {
  return compute("subtract", Binary::kSubtract, Side::kA, a, b);
}
Tensor subtract(double a, const Tensor& b) {
  return compute("subtract", Binary::kSubtract, Side::kB, b, a);
}

Tensor multiply(const Tensor& a, const Tensor& b) {
  return compute("multiply", Binary::kMultiply, a, b);
}
Tensor multiply(const Tensor& a, double b) {
  return compute("multiply", Binary::kMultiply, Side::kA, a, b);
}
Tensor multiply(double a, const Tensor& b) {
  return compute("multiply", Binary::kMultiply, Side::kB, b, a);
}

Tensor divide(const Tensor& a, const Tensor& b) { return compute("divide", Binary::kDivide, a, b); }
Tensor divide(const Tensor& a, double b) {
  return compute("divide", Binary::kDivide, Side::kA, a, b);
}
Tensor divide(double a, const Tensor& b) {
  return compute("divide", Binary::kDivide, Side::kB, b, a);
}

Tensor pow(const Tensor& a, const Tensor& b) { return compute("pow", Binary::kPow, a, b); }
Tensor pow(const Tensor& a, double b) { return compute("pow", Binary::kPow, Side::kA, a, b); }
Tensor pow(double a, const Tensor& b) { return compute("pow", Binary::kPow, Side::kB, b, a); }

Tensor maximum(const Tensor& a, const Tensor& b) {
  return compute("maximum", Binary::kMaximum, a, b);
}
Tensor maximum(const Tensor& a, double b) {
  return compute("maximum", Binary::kMaximum, Side::kA, a, b);
}
Tensor maximum(double a, const Tensor& b) {
  return compute("maximum", Binary::kMaximum, Side::kB, b, a);
}

Tensor minimum(const Tensor& a, const Tensor& b) {
  return compute("minimum", Binary::kMinimum, a, b);
}
Tensor minimum(const Tensor& a, double b) {
  return compute("minimum", Binary::kMinimum, Side::kA, a, b);
}
Tensor minimum(double a, const Tensor& b) {
  return compute("minimum", Binary::kMinimum, Side::kB, b, a);
}

}  // namespace gs
