#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "framework/core/dtype.h"

namespace gs::backend {

// One element converted to another type; the same on the CPU and in kernels.

constexpr float from_bfloat16(BFloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Rounds to nearest, ties to even; NaN stays NaN.
constexpr BFloat16 to_bfloat16(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return {static_cast<uint16_t>((bits >> 16) | 0x40)};
  bits += 0x7fff + ((bits >> 16) & 1);
  return {static_cast<uint16_t>(bits >> 16)};
}

// Numbers turn to bool as "is not zero".
template <typename To, typename From>
constexpr To convert(From x) {
  if constexpr (std::is_same_v<From, BFloat16>) {
    return convert<To>(from_bfloat16(x));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (std::is_same_v<To, int32_t> && std::is_floating_point_v<From>) {
    // Out of range is undefined in C++: clamp, and NaN becomes 0.
    if (!(x == x)) return 0;
    if (x >= From(2147483648.0)) return INT32_MAX;
    return x <= From(-2147483648.0) ? INT32_MIN : static_cast<int32_t>(x);
  } else {
    return static_cast<To>(x);
  }
}

// Calls `function` with a value of the element type, of whatever can be stored.
template <typename Function>
void dispatch_stored(DType dtype, Function&& function) {
  if (dtype == kBFloat16) return function(BFloat16{});
  dispatch_any("cast", dtype, function);
}

}  // namespace gs::backend
