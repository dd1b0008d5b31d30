#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gs {

// A set of 64-bit hashes, open addressing: small and fast for millions of them. The hashes must be
// well mixed in their low bits.
class FingerprintSet {
 public:
  // False if it was there before.
  bool insert(uint64_t fingerprint) {
    if (fingerprint == 0) return !std::exchange(holds_zero_, true);
    if (2 * (used_ + 1) > slots_.size()) grow();
    return place(fingerprint);
  }

  int64_t size() const { return static_cast<int64_t>(used_) + (holds_zero_ ? 1 : 0); }

 private:
  bool place(uint64_t fingerprint) {
    std::size_t slot = fingerprint & (slots_.size() - 1);
    for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1))
      if (slots_[slot] == fingerprint) return false;
    slots_[slot] = fingerprint;
    ++used_;
    return true;
  }

  void grow() {
    const std::vector<uint64_t> old =
        std::exchange(slots_, std::vector<uint64_t>(slots_.empty() ? 1024 : 2 * slots_.size()));
    used_ = 0;
    for (const uint64_t fingerprint : old)
      if (fingerprint != 0) place(fingerprint);
  }

  std::vector<uint64_t> slots_;  // a power of two of them; 0 is empty
  std::size_t used_ = 0;
  bool holds_zero_ = false;
};

}  // namespace gs
