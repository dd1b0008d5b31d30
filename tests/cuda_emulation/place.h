#pragma once

namespace gs::cuda_emulation {

// A position in a kernel's source, for messages. As a default argument `here()` is the position of
// the call.
struct Place {
  const char* file = nullptr;
  int line = 0;
};
constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {file, line};
}
bool operator==(Place a, Place b);

}  // namespace gs::cuda_emulation
