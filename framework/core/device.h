#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace gs {

// Where an array lives: the CPU, or one CUDA device.
struct Device {
  enum class Kind { kCpu, kCuda };

  Kind kind = Kind::kCpu;
  int index = 0;

  static Device cpu() { return {}; }
  static Device cuda(int index = 0) { return {Kind::kCuda, index}; }
  // "cpu", "cuda" or "cuda:1"; anything else is refused.
  static Device parse(std::string_view text);

  bool operator==(const Device&) const = default;
  std::string text() const;
};

}  // namespace gs

template <>
struct fmt::formatter<gs::Device> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const gs::Device& value, Context& context) const {
    const std::string text = value.text();
    return std::copy(text.begin(), text.end(), context.out());
  }
};
