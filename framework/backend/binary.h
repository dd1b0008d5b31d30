#pragma once

#include "framework/backend/operand.h"

namespace gs::backend {

// Operations of two operands, element by element. For int32 all but kDivide and kPow, wrapping
// around.
enum class Binary { kAdd, kSubtract, kMultiply, kDivide, kPow, kMaximum, kMinimum };

// y = operation(a, b) at the shape of y. y may be an operand of the same shape.
void binary(Cpu, Binary operation, Array& y, const Operand& a, const Operand& b);
void binary(Cuda, Binary operation, Array& y, const Operand& a, const Operand& b);

// The gradient of one operand, at the shape of dy: dx = dy * d operation(a, b) / d side. An operand
// that binary_gradient_reads denies may be any number.
enum class Side { kA, kB };
void binary_gradient(Cpu, Binary operation, Side side, Array& dx, const Operand& a,
                     const Operand& b, const Array& dy);
void binary_gradient(Cuda, Binary operation, Side side, Array& dx, const Operand& a,
                     const Operand& b, const Array& dy);

// Calls body(formula) with the formula of an operation: the member of Formulas of its name.
template <typename Formulas, typename Body>
void with_formula(Binary operation, Body&& body) {
  switch (operation) {
    case Binary::kAdd:
      return body(typename Formulas::Add());
    case Binary::kSubtract:
      return body(typename Formulas::Subtract());
    case Binary::kMultiply:
      return body(typename Formulas::Multiply());
    case Binary::kDivide:
      return body(typename Formulas::Divide());
    case Binary::kPow:
      return body(typename Formulas::Pow());
    case Binary::kMaximum:
      return body(typename Formulas::Maximum());
    case Binary::kMinimum:
      return body(typename Formulas::Minimum());
  }
}

// Whether it is a^2 of an array, by far the most frequent power: a product, rounded as well, which
// unary has.
inline bool is_square(Binary operation, const Operand& a, const Operand& b, const Shape& shape) {
  return operation == Binary::kPow && b.array() == nullptr && b.number() == 2 &&
         a.array() != nullptr && a.array()->shape() == shape;
}

// The operands that the gradient of `side` depends on.
struct Reads {
  bool a, b;
};
constexpr Reads binary_gradient_reads(Binary operation, Side side) {
  switch (operation) {
    case Binary::kAdd:
    case Binary::kSubtract:
      return {false, false};
    case Binary::kMultiply:
      return {side == Side::kB, side == Side::kA};
    case Binary::kDivide:
      return {side == Side::kB, true};
    default:
      return {true, true};
  }
}

}  // namespace gs::backend
