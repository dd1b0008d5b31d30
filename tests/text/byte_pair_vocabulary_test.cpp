#include "framework/text/byte_pair_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/text/stored_bytes.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

const std::string kCodes = "#version: 0.2\nl o\nlo w\ne r</w>\nlow er</w>\nä ß</w>\n";

BytePairVocabulary vocabulary(const Lines& lines, VocabularyConfig config = {}) {
  return {BytePairs::parse(kCodes, "codes"), lines, config};
}

TEST(BytePairVocabulary, HoldsThePiecesByCount) {
  const BytePairVocabulary v = vocabulary({"lower low", "lower äß . ."});
  Lines tokens;
  for (int32_t id = 0; id < v.size(); ++id) tokens.emplace_back(v.token(id));
  EXPECT_THAT(tokens,
              ElementsAre("<pad>", "<s>", "</s>", "<unk>", ".", "lower", "lo@@", "w", "äß"));
  EXPECT_EQ(v.id("lo@@"), 6);
  EXPECT_EQ(v.id("lo"), kUnknownId);
  EXPECT_THAT(v.encode(" low  äß."), ElementsAre(6, 7, kUnknownId, kUnknownId, 4));
  EXPECT_EQ(v.encode_lines(Lines{"low", "", "lower"}).tokens, (std::vector<int32_t>{6, 7, 5}));
  EXPECT_EQ(v.encode_lines(Lines{"low", "", "lower"}).offsets, (std::vector<int32_t>{0, 2, 2, 3}));
}

TEST(BytePairVocabulary, IsCutByCountAndSize) {
  const Lines lines{"lower lower low . . ."};
  EXPECT_EQ(vocabulary(lines).size(), 8);
  EXPECT_EQ(vocabulary(lines, {.minimum_count = 2}).size(), 6);
  EXPECT_EQ(vocabulary(lines, {.maximum_size = 5}).token(4), ".");
  EXPECT_THAT(error_of([&] { vocabulary({}); }), HasSubstr("no token is left, got 0 lines"));
}

TEST(BytePairVocabulary, GivesPlainWordsBack) {
  const Lines lines{"lower low äßlow @@ x@@ . lo"};
  const BytePairVocabulary v = vocabulary(lines);
  EXPECT_EQ(v.decode(v.encode(lines[0])), lines[0]);
  EXPECT_EQ(v.decode(v.encode("  low\tlower ")), "low lower");
  EXPECT_EQ(v.decode(std::vector<int32_t>{1, v.id("lo@@"), v.id("w"), 3, v.id("lower"), 2, 0}),
            "low <unk> lower");
  EXPECT_EQ(v.decode(std::vector<int32_t>{v.id("lower"), v.id("lo@@")}), "lower lo");
  EXPECT_EQ(v.decode({}), "");
  EXPECT_THAT(error_of([&] { v.decode(std::vector<int32_t>{999}); }), HasSubstr("id 999"));
}

TEST(BytePairVocabulary, ComesBackFromItsBytes) {
  const BytePairVocabulary v = vocabulary({"lower low äß", "@@"});
  const BytePairVocabulary back = BytePairVocabulary::from_bytes(v.to_bytes());
  EXPECT_EQ(back, v);
  EXPECT_EQ(back.to_bytes(), v.to_bytes());
  EXPECT_EQ(back.encode("low lower"), v.encode("low lower"));
  EXPECT_FALSE(v == vocabulary({"lower low äß"}));
}

TEST(BytePairVocabulary, RefusesDamagedBytes) {
  const std::string bytes = vocabulary({"lower low"}).to_bytes();
  const auto error = [](const std::string& damaged) {
    return error_of([&] { BytePairVocabulary::from_bytes(damaged); });
  };
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error(bytes.substr(0, size)), "") << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(error(flipped), "") << bit;
  }
  EXPECT_THAT(error(bytes + "x"), HasSubstr("damaged"));
}

// Bytes with a right checksum whose content is wrong all the same.
TEST(BytePairVocabulary, RefusesForeignBytes) {
  const auto error = [](const std::string& codes, const std::string& pieces, bool more = false) {
    StoredBytesWriter writer(BytePairVocabulary::kStoredMark, 1);
    writer.block(codes);
    writer.block(pieces);
    if (more) writer.number(1);
    const std::string bytes = writer.finish();
    return error_of([&] { BytePairVocabulary::from_bytes(bytes); });
  };
  const auto pieces = [](TokenUnit unit) {
    TokenCounts counts(unit);
    counts.add("a b");
    return Vocabulary(counts).to_bytes();
  };
  const std::string words = pieces(TokenUnit::kWord);
  EXPECT_THAT(error("a", words), HasSubstr("the stored list of merges:1 must hold two symbols"));
  EXPECT_THAT(error("", words), HasSubstr("holds no merge"));
  EXPECT_THAT(error(kCodes, "junk"), HasSubstr("no vocabulary"));
  EXPECT_THAT(error(kCodes, words.substr(0, words.size() - 1)), HasSubstr("damaged"));
  EXPECT_THAT(error(kCodes, pieces(TokenUnit::kCharacter)), HasSubstr("single characters"));
  EXPECT_THAT(error(kCodes, words, true), HasSubstr("4 bytes follow the last token"));
  EXPECT_THAT(error_of([&] { BytePairVocabulary::from_bytes(words); }),
              HasSubstr("no byte-pair vocabulary"));
}

}  // namespace
}  // namespace gs
