#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// Functions of one number, element by element.
enum class Unary { kRelu, kGelu };

// y = function(x). y may be x.
void unary(Cpu, Unary function, Array& y, const Array& x);

// dx = dy * function'(x). `kept` is what kept_for_gradient names. dx may be dy.
void unary_gradient(Cpu, Unary function, Array& dx, const Array& kept, const Array& dy);

// What the gradient is computed from.
enum class Kept { kInput, kOutput };
constexpr Kept kept_for_gradient(Unary function) {
  switch (function) {
    case Unary::kRelu:
      return Kept::kOutput;
    default:
      return Kept::kInput;
  }
}

}  // namespace gs::backend
