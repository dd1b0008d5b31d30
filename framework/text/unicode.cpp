#include "framework/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr utf8proc_int32_t kNone = -1;
constexpr utf8proc_int32_t kCapitalSigma = 0x3A3;

utf8proc_int32_t code_point_of(std::string_view character) {
  utf8proc_int32_t code_point = kNone;
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(character.data());
  const auto size = static_cast<utf8proc_ssize_t>(character.size());
  return utf8proc_iterate(bytes, size, &code_point) == size ? code_point : kNone;
}

struct Range {
  utf8proc_int32_t first, last;
};

bool is_in(std::span<const Range> ranges, utf8proc_int32_t code_point) {
  return std::any_of(ranges.begin(), ranges.end(), [code_point](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

// The Unicode property Cased: letters of a case, and Other_Lowercase and Other_Uppercase, of which
// only those stand here that is_case_ignorable does not name.
bool is_cased(utf8proc_int32_t code_point) {
  constexpr std::array<Range, 7> kOther{{{0xAA, 0xAA},
                                         {0xBA, 0xBA},
                                         {0x2160, 0x217F},      // Roman numerals
                                         {0x24B6, 0x24E9},      // circled letters
                                         {0x1F130, 0x1F149},    // squared letters
                                         {0x1F150, 0x1F169},    // circled white on black
                                         {0x1F170, 0x1F189}}};  // squared white on black
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      return is_in(kOther, code_point);
  }
}

// The Unicode property Case_Ignorable: marks, formats, modifiers, and the punctuation that words
// hold in their middle (Word_Break of MidLetter, MidNumLet and Single_Quote).
bool is_case_ignorable(utf8proc_int32_t code_point) {
  constexpr std::array<Range, 16> kInsideWords{{{0x27, 0x27},
                                                {0x2E, 0x2E},
                                                {0x3A, 0x3A},
                                                {0xB7, 0xB7},
                                                {0x387, 0x387},
                                                {0x55F, 0x55F},
                                                {0x5F4, 0x5F4},
                                                {0x2018, 0x2019},
                                                {0x2024, 0x2024},
                                                {0x2027, 0x2027},
                                                {0xFE13, 0xFE13},
                                                {0xFE52, 0xFE52},
                                                {0xFE55, 0xFE55},
                                                {0xFF07, 0xFF07},
                                                {0xFF0E, 0xFF0E},
                                                {0xFF1A, 0xFF1A}}};
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return is_in(kInsideWords, code_point);
  }
}

// The Unicode standard's condition Final_Sigma: a cased letter before it and none after it, case-
// ignorable characters left aside.
bool is_final(std::span<const std::string_view> characters, size_t place) {
  const auto is_letter_next = [&](auto begin, auto end) {
    for (; begin != end; ++begin) {
      const utf8proc_int32_t code_point = code_point_of(*begin);
      if (code_point == kNone) return false;
      if (!is_case_ignorable(code_point)) return is_cased(code_point);
    }
    return false;
  };
  return is_letter_next(characters.rend() - static_cast<std::ptrdiff_t>(place),
                        characters.rend()) &&
         !is_letter_next(characters.begin() + static_cast<std::ptrdiff_t>(place) + 1,
                         characters.end());
}

}  // namespace

CharacterClass character_class(std::string_view character) {
  const utf8proc_int32_t code_point = code_point_of(character);
  if (code_point == kNone) return CharacterClass::kOther;
  const char* const category = utf8proc_category_string(code_point);  // such as "Nd"
  switch (category[0]) {
    case 'N':
      return CharacterClass::kNumber;
    case 'P':
      return CharacterClass::kPunctuation;
    case 'S':
      return CharacterClass::kSymbol;
    default:
      return CharacterClass::kOther;
  }
}

std::string lower_case(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  const std::vector<std::string_view> characters = split_characters(text);
  for (size_t i = 0; i < characters.size(); ++i) {
    const utf8proc_int32_t code_point = code_point_of(characters[i]);
    if (code_point == kNone) {
      lower += characters[i];
    } else if (code_point == 0x130) {  // the only character whose mapping is two characters
      lower += "i\xCC\x87";
    } else if (code_point == kCapitalSigma && is_final(characters, i)) {
      lower += "\xCF\x82";
    } else {
      std::array<utf8proc_uint8_t, 4> bytes{};
      const auto size = utf8proc_encode_char(utf8proc_tolower(code_point), bytes.data());
      lower.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
    }
  }
  return lower;
}

}  // namespace gs
