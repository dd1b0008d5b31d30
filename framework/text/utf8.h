#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gs {

// The byte offset of the first sequence that is not UTF-8 (RFC 3629): stray and missing
// continuation bytes, overlong forms, surrogates, values above U+10FFFF and cut ends.
std::optional<int64_t> first_invalid_utf8(std::string_view bytes);

// Refuses a line that is not UTF-8, with the byte and its offset; `operation` begins the error.
void check_utf8(std::string_view operation, std::string_view line);

// A copy in which each maximal invalid part became U+FFFD, as the Unicode standard recommends
// (section 3.9, "substitution of maximal subparts").
std::string replace_invalid_utf8(std::string_view bytes);

// The one rule for spaces, used by corpus readers, word vocabularies and scores alike.
// Spaces are what Python's str.isspace() names: U+0009 to U+000D, U+001C to U+0020, U+0085,
// U+00A0 (no-break), U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000.
// Gives the words between them; a line of spaces alone has none.
std::vector<std::string_view> split_words(std::string_view line);

// The words of the line with one plain space between them. The invisible U+00AD (soft hyphen),
// U+200B (zero-width space), U+2060 (word joiner) and U+FEFF (byte order mark) are dropped, the
// joiners U+200C and U+200D are kept. Letters are not composed: NFC and NFD spellings differ.
std::string normalize_spaces(std::string_view line);

// The code points of valid UTF-8, each as its bytes.
std::vector<std::string_view> split_characters(std::string_view line);

}  // namespace gs
