#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gs {

struct TokenHash : std::hash<std::string_view> {
  using is_transparent = void;
};
// Values by spelling, looked up without a copy.
template <typename Value>
using TokenMap = std::unordered_map<std::string, Value, TokenHash, std::equal_to<>>;

}  // namespace gs
