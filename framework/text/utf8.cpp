#include "framework/text/utf8.h"

#include <cstring>

#include "framework/core/error.h"

namespace gs {
namespace {

// What stands at the front of some bytes: a code point, or an invalid part of `size` bytes.
struct Decoded {
  int64_t size;
  char32_t code_point;
  bool valid;
};

uint8_t byte_at(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

// Table 3-7 of the Unicode standard: only the second byte has ranges of its own.
Decoded decode_front(std::string_view bytes) {
  const uint8_t lead = byte_at(bytes, 0);
  if (lead < 0x80) return {1, lead, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, 0, false};
  const size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  char32_t code_point = lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size() || byte_at(bytes, i) < low || byte_at(bytes, i) > high)
      return {static_cast<int64_t>(i), 0, false};
    code_point = code_point << 6 | (byte_at(bytes, i) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {static_cast<int64_t>(size), code_point, true};
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_invisible(char32_t c) { return c == 0xAD || c == 0x200B || c == 0x2060 || c == 0xFEFF; }

}  // namespace

std::optional<int64_t> first_invalid_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    uint64_t block = 0;  // eight bytes of ASCII at a time
    if (bytes.size() - i >= 8) std::memcpy(&block, bytes.data() + i, 8);
    if (bytes.size() - i >= 8 && (block & 0x8080808080808080u) == 0) {
      i += 8;
      continue;
    }
    const Decoded front = decode_front(bytes.substr(i));
    if (!front.valid) return static_cast<int64_t>(i);
    i += static_cast<size_t>(front.size);
  }
  return std::nullopt;
}

void check_utf8(std::string_view operation, std::string_view line) {
  const std::optional<int64_t> invalid = first_invalid_utf8(line);
  check(!invalid, "{}: the line is not UTF-8, got byte {:#04x} at offset {}; convert it to UTF-8",
        operation, invalid ? byte_at(line, static_cast<size_t>(*invalid)) : 0, invalid.value_or(0));
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Decoded front = decode_front(bytes);
    const std::string_view part = bytes.substr(0, static_cast<size_t>(front.size));
    text += front.valid ? part : std::string_view("\xEF\xBF\xBD");
    bytes.remove_prefix(part.size());
  }
  return text;
}

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t i = 0; i < line.size();) {
    const Decoded front = decode_front(line.substr(i));
    const size_t next = i + static_cast<size_t>(front.size);
    if (front.valid && is_space(front.code_point)) {
      if (i > begin) words.push_back(line.substr(begin, i - begin));
      begin = next;
    }
    i = next;
  }
  if (begin < line.size()) words.push_back(line.substr(begin));
  return words;
}

std::string normalize_spaces(std::string_view line) {
  std::string text;
  text.reserve(line.size());
  bool space_due = false;
  while (!line.empty()) {
    const Decoded front = decode_front(line);
    const std::string_view part = line.substr(0, static_cast<size_t>(front.size));
    line.remove_prefix(part.size());
    if (front.valid && is_invisible(front.code_point)) continue;
    if (front.valid && is_space(front.code_point)) {
      space_due = !text.empty();
      continue;
    }
    if (space_due) text += ' ';
    space_due = false;
    text += part;
  }
  return text;
}

std::vector<std::string_view> split_characters(std::string_view line) {
  std::vector<std::string_view> characters;
  while (!line.empty()) {
    const auto size = static_cast<size_t>(decode_front(line).size);
    characters.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
  return characters;
}

}  // namespace gs
