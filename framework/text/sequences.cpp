#include "framework/text/sequences.h"

#include <limits>

#include "framework/core/error.h"

namespace gs {

int64_t Sequences::length(int64_t i) const {
  check(i >= 0 && i < count(), "sequences: sequence {} is outside 0..{}", i, count() - 1);
  return offsets[static_cast<size_t>(i) + 1] - offsets[static_cast<size_t>(i)];
}

std::span<const int32_t> Sequences::operator[](int64_t i) const {
  const auto size = static_cast<size_t>(length(i));
  return {tokens.data() + offsets[static_cast<size_t>(i)], size};
}

void Sequences::append(std::span<const int32_t> sequence) {
  constexpr size_t kLimit = std::numeric_limits<int32_t>::max();
  check(sequence.size() <= kLimit - tokens.size(),
        "sequences: at most {} tokens fit, got {} and {} more; split the data into parts", kLimit,
        tokens.size(), sequence.size());
  tokens.insert(tokens.end(), sequence.begin(), sequence.end());
  offsets.push_back(static_cast<int32_t>(tokens.size()));
}

}  // namespace gs
