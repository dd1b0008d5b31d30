#pragma once

#include <cstdint>
#include <string_view>

namespace gs {

// FNV-1a, 64 bits, its bits mixed once more so that every residue of it is uniform: the same on
// every machine, for choices that must follow from a text alone.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t word = 0xCBF29CE484222325;
  for (const char c : text) word = (word ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  word = (word ^ (word >> 33)) * 0xFF51AFD7ED558CCD;
  return word ^ (word >> 33);
}

}  // namespace gs
