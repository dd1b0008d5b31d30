#include "framework/text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gs {
namespace {

using testing::ElementsAre;

TEST(Utf8, AcceptsEveryEncodedScalarValue) {
  std::string text;
  for (char32_t c = 1; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    } else {
      if (c < 0x10000) {
        text += static_cast<char>(0xE0 | c >> 12);
      } else {
        text += static_cast<char>(0xF0 | c >> 18);
        text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
      }
      text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
  }
  EXPECT_EQ(first_invalid_utf8(text), std::nullopt);
  EXPECT_EQ(split_characters(text).size(), 0x10FFFFu - 0x800u);
  EXPECT_EQ(replace_invalid_utf8(text), text);
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  struct Case {
    std::string_view bytes;
    std::optional<int64_t> offset;
  };
  const Case cases[] = {
      {"", std::nullopt},
      {"plain", std::nullopt},
      {std::string_view("a\0b", 3), std::nullopt},
      {"a\xFF"
       "b",
       1},                                 // rsennrich/subword-nmt#42
      {"a\xE2\x82", 1},                    // cut at the end of a 3-byte character
      {"\x80", 0},                         // stray continuation byte
      {"ab\xC3", 2},                       // cut
      {"ab\xC3z", 2},                      // missing continuation byte
      {"0123456789\xC0\xA0", 10},          // overlong space
      {"\xC1\xBF", 0},                     // overlong
      {"\xE0\x9F\xBF", 0},                 // overlong
      {"\xF0\x8F\xBF\xBF", 0},             // overlong
      {"\xED\xA0\x80", 0},                 // surrogate
      {"\xED\xBF\xBF", 0},                 // surrogate
      {"\xED\x9F\xBF", std::nullopt},      // U+D7FF
      {"\xF4\x8F\xBF\xBF", std::nullopt},  // U+10FFFF
      {"\xF4\x90\x80\x80", 0},             // above U+10FFFF
      {"\xF5\x80\x80\x80", 0},             // above U+10FFFF
      {"01234567\xC3\xA4"                  // a block of ASCII, then a valid letter,
       "0123456\xE4",                      // then a Latin-1 one
       17},
      {std::string_view("schl\xE4"
                        "ft."),
       4},
  };
  for (const Case& c : cases) EXPECT_EQ(first_invalid_utf8(c.bytes), c.offset) << c.bytes;
}

// The examples of the Unicode standard 15, tables 3-8 and 3-11, checked with Python's
// bytes.decode(errors="replace").
TEST(Utf8, ReplacesMaximalSubparts) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("a\xFF"
                                 "b"),
            "a" + r + "b");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
  EXPECT_EQ(replace_invalid_utf8("x\xE2\x82"), "x" + r);
}

TEST(Utf8, SplitsAtEverySpaceOfPython) {
  EXPECT_THAT(split_words("and  .  x"), ElementsAre("and", ".", "x"));  // rsennrich/subword-nmt#41
  EXPECT_THAT(split_words(""), ElementsAre());
  EXPECT_THAT(split_words("   \t "), ElementsAre());
  EXPECT_THAT(split_words("\xC2\xA0"), ElementsAre());
  EXPECT_THAT(split_words(" a\tb\vc\fd\re\x1c"
                          "f\x1f"
                          "g\n"),
              ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  EXPECT_THAT(split_words("a\xC2\x85"
                          "b\xC2\xA0"
                          "c\xE1\x9A\x80"
                          "d\xE2\x80\x80"
                          "e\xE2\x80\x8A"
                          "f\xE2\x80\xA8"
                          "g\xE2\x80\xA9"
                          "h\xE2\x80\xAF"
                          "i\xE2\x81\x9F"
                          "j\xE3\x80\x80k"),
              ElementsAre("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"));
  // U+200B is no space, nor are letters whose bytes look like one, nor bytes that are not UTF-8.
  EXPECT_THAT(split_words("a\xE2\x80\x8B"
                          "b \xC3\xA0 \x85\xA0"),
              ElementsAre("a\xE2\x80\x8B"
                          "b",
                          "\xC3\xA0", "\x85\xA0"));
}

TEST(Utf8, NormalizesSpaces) {
  EXPECT_EQ(normalize_spaces("  a \xC2\xA0\t b  "), "a b");
  EXPECT_EQ(normalize_spaces("\xEF\xBB\xBF"
                             "The\xE2\x80\x8B man, wo\xC2\xADman\xE2\x81\xA0."),
            "The man, woman.");
  EXPECT_EQ(normalize_spaces("a \xE2\x80\x8B b"), "a b");
  EXPECT_EQ(normalize_spaces("\xE2\x80\x8B \xC2\xA0"), "");
  EXPECT_EQ(normalize_spaces("n\xE2\x80\x8Cm\xE2\x80\x8D"), "n\xE2\x80\x8Cm\xE2\x80\x8D");
  EXPECT_EQ(normalize_spaces("ja\xCC\x88"), "ja\xCC\x88");  // not composed
  EXPECT_EQ(normalize_spaces("a \xFF\xE2 b"), "a \xFF\xE2 b");
}

}  // namespace
}  // namespace gs
