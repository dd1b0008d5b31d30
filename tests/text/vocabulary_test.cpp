#include "framework/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

Vocabulary of_lines(TokenUnit unit, const Lines& lines, VocabularyConfig config = {}) {
  TokenCounts counts(unit);
  counts.add_lines(lines);
  return Vocabulary(counts, config);
}

Vocabulary words(const Lines& lines, VocabularyConfig config = {}) {
  return of_lines(TokenUnit::kWord, lines, config);
}

Vocabulary characters(const Lines& lines) { return of_lines(TokenUnit::kCharacter, lines); }

TEST(Vocabulary, OrdersByCountThenBytes) {
  const Vocabulary v = words({"b a c", "c \xC3\xA4 Z", "c b"});
  EXPECT_EQ(v.size(), 9);
  Lines tokens;
  for (int32_t id = 0; id < v.size(); ++id) tokens.emplace_back(v.token(id));
  EXPECT_THAT(tokens, ElementsAre("<pad>", "<s>", "</s>", "<unk>", "c", "b", "Z", "a", "\xC3\xA4"));
  EXPECT_EQ(v.id("c"), 4);
  EXPECT_EQ(v.id("nothing"), kUnknownId);
}

TEST(Vocabulary, IsCutByCountAndSize) {
  const Lines lines{"a a a b b c c d"};
  EXPECT_EQ(words(lines, {.minimum_count = 2}).size(), 7);
  const Vocabulary v = words(lines, {.maximum_size = 6});
  EXPECT_EQ(v.size(), 6);
  EXPECT_THAT(v.encode("a b c d"), ElementsAre(4, 5, kUnknownId, kUnknownId));
  EXPECT_EQ(words(lines, {.maximum_size = 100}).size(), 8);
}

TEST(Vocabulary, RoundTripsWords) {
  const Vocabulary v = words({"the man sees", "the dog"});
  const std::vector<int32_t> ids = v.encode(" the\xC2\xA0 dog\tsees ");
  EXPECT_THAT(ids, ElementsAre(4, 5, 7));
  EXPECT_EQ(v.decode(ids), "the dog sees");
  EXPECT_EQ(v.decode(std::vector<int32_t>{1, 4, 3, 2, 0, 0}), "the <unk>");
  EXPECT_THAT(v.encode(""), ElementsAre());
  EXPECT_EQ(v.decode({}), "");
}

// A zero-width space inside a word changes nothing.
TEST(Vocabulary, DropsInvisibleCharacters) {
  const Vocabulary v = words({"a woman"});
  EXPECT_EQ(v.encode("a wo\xE2\x80\x8Bman"), v.encode("a woman"));
}

TEST(Vocabulary, LiteralControlSpellingsAreWords) {
  const std::string line = "</s> <unk> <s> <pad> @@ x";
  const Vocabulary unaware = words({"x"});
  EXPECT_THAT(unaware.encode(line), ElementsAre(3, 3, 3, 3, 3, 4));
  const Vocabulary aware = words({line});
  for (const int32_t id : aware.encode(line)) EXPECT_GE(id, kControlIds);
  EXPECT_EQ(aware.decode(aware.encode(line)), line);
  EXPECT_EQ(Vocabulary::from_bytes(aware.to_bytes()).encode(line), aware.encode(line));
  for (const int32_t id : characters({line}).encode(line)) EXPECT_GE(id, kControlIds);
}

// google/sentencepiece#101, #684, #804; rasbt/LLMs-from-scratch#495: words are normalized,
// characters are kept as they stand.
TEST(Vocabulary, CharactersKeepTheLine) {
  for (const std::string line : {"a\nb", "a   b", " \xE2\x80\x8B\xC2\xA0x\xF0\x9F\x98\x80\t", ""}) {
    const Vocabulary v = characters({line, "q"});
    EXPECT_EQ(v.decode(v.encode(line)), line);
  }
  EXPECT_EQ(words({"a b"}).decode(words({"a b"}).encode("a   b")), "a b");
  EXPECT_EQ(words({"a b"}).decode(words({"a b"}).encode("a\nb")), "a b");
}

// rsennrich/subword-nmt#41: odd spaces count well; nothing to count is an error that says so.
TEST(Vocabulary, CountsOddLinesAndRefusesEmptyText) {
  TokenCounts counts(TokenUnit::kWord);
  counts.add("and  .  x");
  counts.add("hello world\n \n");
  counts.add("");
  EXPECT_EQ(counts.lines(), 3);
  EXPECT_EQ(counts.of("and"), 1);
  EXPECT_EQ(counts.of(""), 0);
  EXPECT_EQ(counts.tokens().size(), 5u);
  EXPECT_THAT(test::error_of([] { words({}); }), HasSubstr("no token is left, got 0 lines"));
  EXPECT_THAT(test::error_of([] { words({"", " "}); }), HasSubstr("got 2 lines with 0 distinct"));
  EXPECT_THAT(test::error_of([] { words({"a b"}, {.minimum_count = 2}); }),
              HasSubstr("2 distinct tokens and minimum_count 2"));
  EXPECT_EQ(words({"x"}).size(), 5);
}

// rsennrich/subword-nmt#42
TEST(Vocabulary, RefusesInvalidUtf8) {
  const Vocabulary v = words({"a b"});
  EXPECT_THAT(test::error_of([&] {
                v.encode(
                    "a\xFF"
                    "b");
              }),
              HasSubstr("encode: the line is not UTF-8, got byte 0xff at offset 1"));
  TokenCounts counts(TokenUnit::kCharacter);
  EXPECT_THAT(test::error_of([&] { counts.add("\xE2\x82"); }), HasSubstr("0xe2 at offset 0"));
}

TEST(Vocabulary, RefusesBadIdsAndConfigs) {
  const Vocabulary v = words({"a"});
  EXPECT_THAT(test::error_of([&] { v.decode(std::vector<int32_t>{5}); }),
              HasSubstr("id 5 is outside 0..4"));
  EXPECT_THAT(test::error_of([&] { v.token(-1); }), HasSubstr("id -1 is outside"));
  EXPECT_THAT(test::error_of([] { words({"a"}, {.minimum_count = 0}); }), HasSubstr("got 0"));
  EXPECT_THAT(test::error_of([] { words({"a"}, {.maximum_size = 4}); }),
              HasSubstr("at least 5, got 4"));
}

TEST(Vocabulary, EncodesLinesPacked) {
  const Vocabulary v = words({"a b"});
  const Sequences sequences = v.encode_lines(Lines{"a", "", "b a"});
  EXPECT_THAT(sequences.tokens, ElementsAre(4, 5, 4));
  EXPECT_THAT(sequences.offsets, ElementsAre(0, 1, 1, 3));
}

// marian-nmt/marian-dev#357; ufal/lindat-translation#61; huggingface/transformers#14337;
// OpenNMT/OpenNMT#77: blank lines keep their places.
TEST(Vocabulary, BlankLinesAreEmptySequences) {
  const Vocabulary v = words({"a b c"});
  const Sequences sequences = v.encode_lines(Lines{"a b", "", "   ", "\xC2\xA0", "c"});
  EXPECT_THAT(sequences.tokens, ElementsAre(4, 5, 6));
  EXPECT_THAT(sequences.offsets, ElementsAre(0, 2, 2, 2, 2, 3));
}

TEST(Vocabulary, StoresItself) {
  const Vocabulary w = words({"der K\xC3\xB6nig", "der"});
  EXPECT_EQ(Vocabulary::from_bytes(w.to_bytes()), w);
  const Vocabulary c = characters({std::string("a\n\0 b", 5)});
  EXPECT_EQ(Vocabulary::from_bytes(c.to_bytes()), c);
  EXPECT_FALSE(w == c);
  // The stored form of version 1, byte by byte; the checksum is Python's zlib.crc32.
  EXPECT_EQ(words({"ab"}).to_bytes(), std::string("GSVOCAB\n\1\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0ab"
                                                  "\xD3\x16\x4E\x77",
                                                  30));
}

TEST(Vocabulary, RefusesDamagedBytes) {
  const std::string bytes = words({"der K\xC3\xB6nig und die K\xC3\xB6nigin"}).to_bytes();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(test::error_of([&] { Vocabulary::from_bytes(bytes.substr(0, size)); }), "") << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(test::error_of([&] { Vocabulary::from_bytes(flipped); }), "") << bit;
  }
  EXPECT_THAT(test::error_of([&] { Vocabulary::from_bytes(bytes + "x"); }), HasSubstr("damaged"));
  EXPECT_THAT(test::error_of([] { Vocabulary::from_bytes("other"); }), HasSubstr("no vocabulary"));
}

// Bytes with a right checksum whose content is wrong all the same.
TEST(Vocabulary, RefusesForeignBytes) {
  const auto error_for = [](const std::string& content) {
    std::string bytes = "GSVOCAB\n" + content;
    const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(crc >> shift & 0xFF);
    return test::error_of([&] { Vocabulary::from_bytes(bytes); });
  };
  using namespace std::string_literals;
  const std::string words = "\1\0\0\0\0\0\0\0"s, characters = "\1\0\0\0\1\0\0\0"s;
  const std::string one = "\1\0\0\0"s, two = "\2\0\0\0"s, all = "\xFF\xFF\xFF\xFF"s;
  EXPECT_THAT(error_for(two + words),
              HasSubstr("version 2 is stored, this program reads version 1"));
  EXPECT_THAT(error_for(one + two + one), HasSubstr("unit must be 0 or 1, got 2"));
  EXPECT_THAT(error_for(words + all + one + "a"), HasSubstr("end too early"));
  EXPECT_THAT(error_for(words + one + all + "a"), HasSubstr("end too early"));
  EXPECT_THAT(error_for(words + one + one + "ab"), HasSubstr("1 bytes follow the last token"));
  EXPECT_THAT(error_for(words + two + one + "a" + one + "a"), HasSubstr("'a' stands in it twice"));
  EXPECT_THAT(error_for(words + one + one + "\xFF"), HasSubstr("of 1 bytes is no word"));
  EXPECT_THAT(error_for(words + one + one + " "), HasSubstr("is no word"));
  EXPECT_THAT(error_for(words + one + "\0\0\0\0"s), HasSubstr("of 0 bytes is no word"));
  EXPECT_THAT(error_for(characters + one + two + "ab"), HasSubstr("of 2 bytes is no character"));
}

}  // namespace
}  // namespace gs
