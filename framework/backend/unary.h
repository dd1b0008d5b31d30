#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Functions of one number, element by element.
enum class Unary {
  kNegate,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kAbs,
  kSquare,
  kTanh,
  kSigmoid,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kClamp
};

// The limits of kClamp; other functions have none.
struct Limits {
  double low = 0, high = 0;
};

// y = function(x). y may be x.
void unary(Cpu, Unary function, Array& y, const Array& x, Limits limits = {});
void unary(Cuda, Unary function, Array& y, const Array& x, Limits limits = {});

// dx = dy * function'(x). `kept` is what kept_for_gradient names, any array for kNothing. dx may be
// dy.
void unary_gradient(Cpu, Unary function, Array& dx, const Array& kept, const Array& dy,
                    Limits limits = {});
void unary_gradient(Cuda, Unary function, Array& dx, const Array& kept, const Array& dy,
                    Limits limits = {});

// Calls body(formula) with the formula of a function: the member of Formulas of its name.
template <typename Formulas, typename Body>
void with_formula(Unary function, Limits limits, Body&& body) {
  switch (function) {
    case Unary::kNegate:
      return body(typename Formulas::Negate());
    case Unary::kExp:
      return body(typename Formulas::Exp());
    case Unary::kLog:
      return body(typename Formulas::Log());
    case Unary::kSqrt:
      return body(typename Formulas::Sqrt());
    case Unary::kRsqrt:
      return body(typename Formulas::Rsqrt());
    case Unary::kAbs:
      return body(typename Formulas::Abs());
    case Unary::kSquare:
      return body(typename Formulas::Square());
    case Unary::kTanh:
      return body(typename Formulas::Tanh());
    case Unary::kSigmoid:
      return body(typename Formulas::Sigmoid());
    case Unary::kRelu:
      return body(typename Formulas::Relu());
    case Unary::kGelu:
      return body(typename Formulas::Gelu());
    case Unary::kGeluTanh:
      return body(typename Formulas::GeluTanh());
    case Unary::kSilu:
      return body(typename Formulas::Silu());
    case Unary::kClamp:
      return body(typename Formulas::Clamp{limits});
  }
}

// What the gradient is computed from.
enum class Kept { kNothing, kInput, kOutput };
constexpr Kept kept_for_gradient(Unary function) {
  switch (function) {
    case Unary::kNegate:
      return Kept::kNothing;
    case Unary::kExp:
    case Unary::kSqrt:
    case Unary::kRsqrt:
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kRelu:
      return Kept::kOutput;
    default:
      return Kept::kInput;
  }
}

}  // namespace gs::backend
