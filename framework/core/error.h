#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace gs {

// What every refused call throws. The message reads
// "<operation>: <what is wrong>, got <values>; <what to do>".
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws Error with a formatted message.
template <typename... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> message, Arguments&&... arguments) {
  throw Error(fmt::format(message, std::forward<Arguments>(arguments)...));
}

// Throws Error with a formatted message unless `condition` holds.
template <typename... Arguments>
void check(bool condition, fmt::format_string<Arguments...> message, Arguments&&... arguments) {
  if (!condition) [[unlikely]]
    fail(message, std::forward<Arguments>(arguments)...);
}

}  // namespace gs
