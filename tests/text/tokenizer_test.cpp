#include "framework/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

const Lines kLines{"ab abc", "b c", ""};

Vocabulary vocabulary(TokenUnit unit) {
  TokenCounts counts(unit);
  counts.add_lines(kLines);
  return Vocabulary(counts);
}

BytePairVocabulary byte_pairs() { return {BytePairs::parse("a b\n", "codes"), kLines}; }

const std::vector<Tokenizer>& all_kinds() {
  static const std::vector<Tokenizer> kinds{vocabulary(TokenUnit::kWord),
                                            vocabulary(TokenUnit::kCharacter), byte_pairs(),
                                            SentencePiece::train(kLines, {.vocabulary_size = 264})};
  return kinds;
}

TEST(Tokenizer, HasTheSameControlIdsForAllKinds) {
  for (const Tokenizer& tokenizer : all_kinds()) {
    EXPECT_EQ(tokenizer.token(kPaddingId), "<pad>");
    EXPECT_EQ(tokenizer.token(kBeginId), "<s>");
    EXPECT_EQ(tokenizer.token(kEndId), "</s>");
    EXPECT_EQ(tokenizer.token(kUnknownId), "<unk>");
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{kBeginId, kPaddingId, kEndId}), "");
    for (const Tokenizer& other : all_kinds()) EXPECT_EQ(tokenizer == other, &tokenizer == &other);
  }
}

TEST(Tokenizer, NamesItsUnit) {
  std::vector<std::string> units;
  for (const Tokenizer& tokenizer : all_kinds()) units.push_back(tokenizer.unit());
  EXPECT_THAT(units, ElementsAre("word", "character", "byte-pair", "sentencepiece"));
}

TEST(Tokenizer, EncodesAndDecodesAsItsKindDoes) {
  const Tokenizer words = all_kinds()[0], characters = all_kinds()[1], pairs = all_kinds()[2],
                  pieces = all_kinds()[3];
  EXPECT_EQ(words.size(), 8);
  EXPECT_THAT(words.encode("c ab d"), ElementsAre(words.id("c"), words.id("ab"), kUnknownId));
  EXPECT_EQ(characters.size(), 8);
  EXPECT_EQ(characters.encode("c ab").size(), 4u);
  EXPECT_EQ(pairs.size(), 8);
  EXPECT_THAT(pairs.encode("abc ab"), ElementsAre(pairs.id("ab@@"), pairs.id("c"), pairs.id("ab")));
  EXPECT_EQ(pieces.size(), 264);
  EXPECT_EQ(pieces.decode(pieces.encode("  xy ")), "  xy ");
  for (const Tokenizer& tokenizer : all_kinds()) {
    const Sequences all = tokenizer.encode_lines(kLines);
    ASSERT_EQ(all.count(), 3);
    for (int64_t i = 0; i < 3; ++i) {
      const std::string& line = kLines[static_cast<size_t>(i)];
      EXPECT_THAT(tokenizer.encode(line), testing::ElementsAreArray(all[i]));
      EXPECT_EQ(tokenizer.decode(all[i]), line);
    }
    for (int32_t id = kUnknownId; id < tokenizer.size(); ++id)
      EXPECT_EQ(tokenizer.id(tokenizer.token(id)), id);
    EXPECT_THAT(error_of([&] { (void)tokenizer.token(999); }), HasSubstr("id 999 is outside"));
    EXPECT_THAT(error_of([&] { tokenizer.encode("a\xff"); }), HasSubstr("offset 1"));
  }
}

TEST(Tokenizer, ComesBackFromItsBytesAsTheSameKind) {
  for (const Tokenizer& tokenizer : all_kinds()) {
    const Tokenizer back = Tokenizer::from_bytes(tokenizer.to_bytes());
    EXPECT_EQ(back, tokenizer);
    EXPECT_EQ(back.kind().index(), tokenizer.kind().index());
  }
  // What was stored before there were several kinds.
  EXPECT_EQ(Tokenizer::from_bytes(vocabulary(TokenUnit::kWord).to_bytes()), all_kinds()[0]);
  EXPECT_THAT(error_of([] { Tokenizer::from_bytes("junk"); }), HasSubstr("without its mark"));
  EXPECT_THAT(error_of([] { Tokenizer::from_bytes(""); }), HasSubstr("without its mark"));
}

}  // namespace
}  // namespace gs
