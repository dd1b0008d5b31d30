#pragma once

#include "framework/tensor/tensor.h"

namespace gs {

// Checks that operations of several operands share.

// Refuses an undefined tensor, and two tensors that differ in type or device.
inline void check_operand(const char* operation, const Tensor& x) {
  check(x.defined(), "{}: got an undefined tensor; give it values first", operation);
}

inline void check_operands(const char* operation, const Tensor& a, const Tensor& b) {
  check_operand(operation, a);
  check_operand(operation, b);
  check(a.dtype() == b.dtype() && a.device() == b.device(),
        "{}: the operands must have one type and device, got {} on {} and {} on {}; convert one",
        operation, a.dtype(), a.device(), b.dtype(), b.device());
}

// Refuses a number that an element of an int32 tensor cannot hold.
inline void check_number(const char* operation, const Tensor& x, double number) {
  if (x.dtype() != kInt32) return;
  const bool fits = number >= -2147483648.0 && number <= 2147483647.0 &&
                    static_cast<double>(static_cast<int32_t>(number)) == number;
  check(fits, "{}: an int32 tensor takes whole numbers of 32 bits, got {}; cast it first",
        operation, number);
}

}  // namespace gs
