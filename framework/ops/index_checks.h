#pragma once

#include <optional>

#include "framework/tensor/tensor.h"

namespace gs {

// While one lives in the thread, indices and targets are taken to be inside of their tables: the
// host has checked them before it sent them to a device, which need not be waited for.
class TrustedIndices {
 public:
  TrustedIndices();
  ~TrustedIndices();
  TrustedIndices(const TrustedIndices&) = delete;
  TrustedIndices& operator=(const TrustedIndices&) = delete;

 private:
  bool before_;
};
bool trusts_indices();

// The position of the first of int32 `indices` that is outside 0..size - 1 and not `allowed`; -1 if
// there is none, or if they are trusted.
int64_t first_outside(const Tensor& indices, int64_t size,
                      std::optional<int64_t> allowed = std::nullopt);

// Refuses indices that are not int32, lie on another device or name a place outside 0..size - 1;
// the message gives the first such index and its position.
inline void check_indices(const char* operation, const Tensor& indices, int64_t size,
                          Device device) {
  check(indices.dtype() == kInt32, "{}: indices must be int32, got {}; cast them", operation,
        indices.dtype());
  check(indices.device() == device, "{}: indices must be on {}, got {}; move them", operation,
        device, indices.device());
  const int64_t position = first_outside(indices, size);
  if (position < 0) return;
  fail("{}: index {} at position {} is outside 0..{}", operation,
       indices.values<int32_t>()[static_cast<size_t>(position)], position, size - 1);
}

}  // namespace gs
