// The stored form of a vocabulary, all numbers little-endian:
//   "GSVOCAB\n", u32 version, u32 unit (0 word, 1 character), u32 number of tokens,
//   per token u32 size and its bytes, u32 CRC-32 of all before it.
#include <zlib.h>

#include "framework/core/error.h"
#include "framework/text/utf8.h"
#include "framework/text/vocabulary.h"

namespace gs {
namespace {

constexpr std::string_view kMagic = "GSVOCAB\n";
constexpr uint32_t kVersion = 1;

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void write_number(std::string& bytes, uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(number >> shift & 0xFF);
}

std::string_view take(std::string_view& bytes, size_t size) {
  check(size <= bytes.size(),
        "vocabulary: the stored bytes end too early, got {} of {}; restore the file from a copy",
        bytes.size(), size);
  const std::string_view front = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return front;
}

uint32_t take_number(std::string_view& bytes) {
  uint32_t number = 0;
  const std::string_view front = take(bytes, 4);
  for (size_t i = 0; i < 4; ++i)
    number |= static_cast<uint32_t>(static_cast<uint8_t>(front[i])) << (8 * i);
  return number;
}

void check_token(TokenUnit unit, std::string_view token) {
  const bool whole = !first_invalid_utf8(token) &&
                     (unit == TokenUnit::kCharacter
                          ? split_characters(token).size() == 1
                          : normalize_spaces(token) == token && split_words(token).size() == 1);
  check(whole, "vocabulary: a stored token of {} bytes is no {}; restore the file from a copy",
        token.size(), unit == TokenUnit::kCharacter ? "character" : "word");
}

}  // namespace

std::string Vocabulary::to_bytes() const {
  std::string bytes(kMagic);
  write_number(bytes, kVersion);
  write_number(bytes, unit_ == TokenUnit::kWord ? 0 : 1);
  write_number(bytes, static_cast<uint32_t>(tokens_.size()));
  for (const std::string& token : tokens_) {
    write_number(bytes, static_cast<uint32_t>(token.size()));
    bytes += token;
  }
  write_number(bytes, checksum(bytes));
  return bytes;
}

Vocabulary Vocabulary::from_bytes(std::string_view bytes) {
  check(bytes.substr(0, kMagic.size()) == kMagic,
        "vocabulary: the stored bytes are no vocabulary, got {} bytes without its mark; check the "
        "file",
        bytes.size());
  std::string_view rest = bytes.substr(kMagic.size());
  const uint32_t version = take_number(rest);
  check(version == kVersion,
        "vocabulary: version {} is stored, this program reads version {}; update it", version,
        kVersion);
  check(rest.size() >= 4, "vocabulary: the stored bytes end too early, got {}", bytes.size());
  std::string_view stored = rest.substr(rest.size() - 4);
  rest.remove_suffix(4);
  const uint32_t expected = take_number(stored),
                 computed = checksum(bytes.substr(0, bytes.size() - 4));
  check(expected == computed,
        "vocabulary: the stored bytes are damaged, got checksum {:08x} for {:08x}; restore the "
        "file from a copy",
        computed, expected);
  const uint32_t unit_number = take_number(rest), count = take_number(rest);
  check(unit_number <= 1, "vocabulary: the stored unit must be 0 or 1, got {}", unit_number);
  const TokenUnit unit = unit_number == 0 ? TokenUnit::kWord : TokenUnit::kCharacter;
  std::vector<std::string> tokens;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view token = take(rest, take_number(rest));
    check_token(unit, token);
    tokens.emplace_back(token);
  }
  check(rest.empty(), "vocabulary: {} bytes follow the last token; restore the file from a copy",
        rest.size());
  return Vocabulary(unit, std::move(tokens));
}

}  // namespace gs
