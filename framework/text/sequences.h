#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gs {

// Token sequences packed one after another: sequence i is tokens[offsets[i]] up to
// tokens[offsets[i + 1]]. Sequences may be empty; there is no padding.
struct Sequences {
  std::vector<int32_t> tokens;         // (N)
  std::vector<int32_t> offsets = {0};  // (B + 1)

  int64_t count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t length(int64_t i) const;
  std::span<const int32_t> operator[](int64_t i) const;
  // Puts one more at the end. More than 2^31 - 1 tokens together are refused.
  void append(std::span<const int32_t> sequence);

  bool operator==(const Sequences&) const = default;
};

}  // namespace gs
