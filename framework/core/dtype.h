#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/core/error.h"

namespace gs {

// Element types. Operations compute with bfloat16 on CUDA devices alone.
enum class DType { kFloat32, kFloat64, kInt32, kBool, kBFloat16 };

struct BFloat16 {
  uint16_t bits;
};

inline constexpr DType kFloat32 = DType::kFloat32, kFloat64 = DType::kFloat64,
                       kInt32 = DType::kInt32, kBool = DType::kBool, kBFloat16 = DType::kBFloat16;

inline int64_t size_of(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return 4;
    case kFloat64:
      return 8;
    case kInt32:
      return 4;
    case kBool:
      return 1;
    case kBFloat16:
      return 2;
  }
  return 0;
}

inline const char* name_of(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return "float32";
    case kFloat64:
      return "float64";
    case kInt32:
      return "int32";
    case kBool:
      return "bool";
    case kBFloat16:
      return "bfloat16";
  }
  return "?";
}

inline bool is_floating(DType dtype) { return dtype == kFloat32 || dtype == kFloat64; }

template <typename T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "not an element type");
  return kFloat32;
}();
template <>
inline constexpr DType dtype_of<float> = kFloat32;
template <>
inline constexpr DType dtype_of<double> = kFloat64;
template <>
inline constexpr DType dtype_of<int32_t> = kInt32;
template <>
inline constexpr DType dtype_of<bool> = kBool;
template <>
inline constexpr DType dtype_of<BFloat16> = kBFloat16;

// Calls `function` with a value of the element type of `dtype`: [&](auto zero) { using T =
// decltype(zero); ... }.
template <typename Function>
decltype(auto) dispatch_floating(const char* operation, DType dtype, Function&& function) {
  switch (dtype) {
    case kFloat32:
      return function(float{});
    case kFloat64:
      return function(double{});
    default:
      fail("{}: needs float32 or float64, got {}; cast it first", operation, name_of(dtype));
  }
}

// The same over every type that computes: float32, float64, int32, bool.
template <typename Function>
decltype(auto) dispatch_any(const char* operation, DType dtype, Function&& function) {
  switch (dtype) {
    case kFloat32:
      return function(float{});
    case kFloat64:
      return function(double{});
    case kInt32:
      return function(int32_t{});
    case kBool:
      return function(bool{});
    default:
      fail("{}: does not compute with {}; cast it first", operation, name_of(dtype));
  }
}

}  // namespace gs

template <>
struct fmt::formatter<gs::DType> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const gs::DType& value, Context& context) const {
    const std::string_view text = gs::name_of(value);
    return std::copy(text.begin(), text.end(), context.out());
  }
};
