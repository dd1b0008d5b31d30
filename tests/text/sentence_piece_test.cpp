#include "framework/text/sentence_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "framework/text/stored_bytes.h"
#include "framework/text/vocabulary.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using Lines = std::vector<std::string>;
using Config = SentencePieceConfig;

const Lines kLines{"Der Mann sieht den Hund.",
                   "Die Frau sieht den Mann.",
                   "Der Hund sieht die Katze.",
                   "Die Katze sieht die Frau und den Hund.",
                   "Eine Frau und ein Mann sehen eine Katze.",
                   "Ein Hund und eine Katze schlafen.",
                   "Der Mann schläft, die Frau schläft."};

const SentencePiece& unigram() {
  static const auto model = SentencePiece::train(kLines, {.vocabulary_size = 295});
  return model;
}

const SentencePiece& byte_pairs() {
  static const auto model =
      SentencePiece::train(kLines, {.vocabulary_size = 320, .model = Config::Model::kBytePairs});
  return model;
}

const SentencePiece& nfkc() {
  static const auto model = SentencePiece::train(
      kLines, {.vocabulary_size = 295, .normalizer = Config::Normalizer::kNfkc});
  return model;
}

std::string pieces(const SentencePiece& model, const std::string& line) {
  std::string text;
  for (const int32_t id : model.encode(line)) text += std::string(model.token(id)) + "|";
  return text;
}

std::string utf8_of(char32_t c) {
  std::string text;
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto continued = [&](int shift) { put(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    continued(6);
  } else {
    put(0xF0 | c >> 18);
    continued(12);
    continued(6);
  }
  continued(0);
  return text;
}

// The pieces and ids are those of the Python package sentencepiece 0.1.97 with the same choices.
TEST(SentencePiece, LearnsTheSamePiecesAsThePythonPackage) {
  EXPECT_EQ(unigram().size(), 295);
  EXPECT_EQ(pieces(unigram(), "Der Hund schläft."), "▁D|e|r|▁Hund|▁s|c|h|l|ä|f|t|.|");
  EXPECT_THAT(unigram().encode("Der Hund schläft."),
              ElementsAre(268, 264, 263, 273, 269, 284, 278, 283, 281, 293, 271, 262));
  EXPECT_EQ(pieces(unigram(), "Eine Kätzin  sieht ✓"),
            "▁|E|i|n|e|▁|K|ä|t|z|i|n|▁|▁s|ie|h|t|▁|<0xE2>|<0x9C>|<0x93>|");
  EXPECT_EQ(byte_pairs().size(), 320);
  EXPECT_EQ(pieces(byte_pairs(), "Der Hund schläft."), "▁Der|▁Hund|▁schl|ä|f|t|.|");
  EXPECT_THAT(byte_pairs().encode("Der Hund schläft."),
              ElementsAre(291, 282, 295, 318, 315, 303, 306));
  EXPECT_EQ(pieces(byte_pairs(), "Eine Kätzin  sieht ✓"),
            "▁|E|ine|▁|K|ä|tz|in|▁|▁sieht|▁|<0xE2>|<0x9C>|<0x93>|");
}

TEST(SentencePiece, HasTheControlIdsOfAllTokenizers) {
  for (const SentencePiece* model : {&unigram(), &byte_pairs(), &nfkc()}) {
    EXPECT_EQ(model->token(kPaddingId), "<pad>");
    EXPECT_EQ(model->token(kBeginId), "<s>");
    EXPECT_EQ(model->token(kEndId), "</s>");
    EXPECT_EQ(model->token(kUnknownId), "<unk>");
    EXPECT_EQ(model->id("no such piece"), kUnknownId);
    for (int32_t id = kUnknownId; id < model->size(); ++id)
      ASSERT_EQ(model->id(model->token(id)), id);
    const std::vector<int32_t> hund = model->encode("Hund");
    std::vector<int32_t> marked{kBeginId};
    marked.insert(marked.end(), hund.begin(), hund.end());
    marked.insert(marked.end(), {kEndId, kPaddingId, kPaddingId});
    EXPECT_EQ(model->decode(marked), "Hund");
    EXPECT_EQ(model->decode(std::vector<int32_t>{kUnknownId}), "<unk>");
    EXPECT_EQ(model->decode({}), "");
    // Spellings of control tokens in a text are text.
    for (const char* line : {"<s>", "a </s> b", "<unk>", "<pad>", "<0x41>"}) {
      for (const int32_t id : model->encode(line)) EXPECT_GT(id, kUnknownId);
      EXPECT_EQ(model->decode(model->encode(line)), line);
    }
  }
}

// google/sentencepiece#101, google/sentencepiece#684, google/sentencepiece#804,
// rasbt/LLMs-from-scratch#495
TEST(SentencePiece, TheIdentityGivesEveryLineBack) {
  const Lines lines{"a\nb",
                    "a   b",
                    "",
                    " ",
                    "   ",
                    " a",
                    "a ",
                    "  a  b  ",
                    "\n",
                    "\t\t",
                    "\r\n",
                    "Der Hund schläft.",
                    "▁",
                    "▁▁",
                    " ▁ ▁a",
                    "a▁b ▁",
                    "\x1A",
                    "\x1A\x1A",
                    "\x1A_",
                    "▁\x1A_▁\x1A",
                    "_▁_",
                    std::string("\0", 1),
                    std::string("a\0b \0", 5),
                    "▅ a",
                    "e\u0301 \u00e9",
                    "\u00a0\u2003\u200b\ufeff",
                    "日本語 テスト",
                    "👩‍👧 🇩🇪",
                    "@@ </w>"};
  for (const SentencePiece* model : {&unigram(), &byte_pairs()}) {
    for (const std::string& line : lines)
      EXPECT_EQ(model->decode(model->encode(line)), line) << testing::PrintToString(line);
    for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
      if (c >= 0xD800 && c < 0xE000) continue;
      const std::string character = utf8_of(c);
      for (const std::string& line : {character, " " + character + "  a" + character + " "})
        ASSERT_EQ(model->decode(model->encode(line)), line) << static_cast<uint32_t>(c);
    }
  }
}

// The escapes are learned like all else, where the text is full of them.
TEST(SentencePiece, TheIdentityHoldsWithTheSpaceMarkInTheTraining) {
  const Lines lines{"▁ ▁a ▁a ▁a b▁ b▁ \x1A", "▁a ▁a b▁", "a b"};
  const auto model = SentencePiece::train(lines, {.vocabulary_size = 266});
  for (const std::string& line : lines) EXPECT_EQ(model.decode(model.encode(line)), line);
}

TEST(SentencePiece, NfkcMakesSpellingsEqual) {
  EXPECT_EQ(nfkc().decode(nfkc().encode("  Ｄｅｒ  ﬁ Hund ① \u200b x ")), "Der fi Hund 1 x");
  EXPECT_EQ(nfkc().encode("e\u0301"), nfkc().encode("\u00e9"));
  EXPECT_NE(unigram().encode("e\u0301"), unigram().encode("\u00e9"));
  EXPECT_THAT(nfkc().encode(" \t "), ElementsAre());
}

TEST(SentencePiece, BytesThatAreNoCharacterBecomeReplacementCharacters) {
  const std::vector<int32_t> cut{unigram().id("<0xE2>"), unigram().id("<0x9C>")};
  EXPECT_EQ(unigram().decode(cut), "\ufffd\ufffd");
}

TEST(SentencePiece, EncodesLinesOneByOne) {
  const Sequences all = unigram().encode_lines(kLines);
  ASSERT_EQ(all.count(), static_cast<int64_t>(kLines.size()));
  for (int64_t i = 0; i < all.count(); ++i)
    EXPECT_THAT(unigram().encode(kLines[static_cast<size_t>(i)]),
                testing::ElementsAreArray(all[i]));
}

TEST(SentencePiece, LearnsTheSameFromTheSame) {
  EXPECT_EQ(SentencePiece::train(kLines, {.vocabulary_size = 295}), unigram());
  EXPECT_FALSE(SentencePiece::train(kLines, {.vocabulary_size = 296}) == unigram());
  EXPECT_FALSE(nfkc() == unigram());
}

TEST(SentencePiece, RefusesSizesThatTheTextHasNoPiecesFor) {
  const auto error = [](int64_t size, Config::Model model = Config::Model::kUnigram) {
    return error_of(
        [&] { SentencePiece::train(kLines, {.vocabulary_size = size, .model = model}); });
  };
  EXPECT_EQ(
      error(10000),
      "sentence_piece: the text has pieces for a vocabulary of at most 298, got 10000; choose "
      "a smaller one, or give more text");
  EXPECT_THAT(error(391, Config::Model::kBytePairs), HasSubstr("at most 390, got 391"));
  EXPECT_EQ(SentencePiece::train(kLines, {.vocabulary_size = 298}).size(), 298);
  EXPECT_EQ(
      error(262),
      "sentence_piece: the characters of the text need a vocabulary of at least 284, got 262; "
      "choose a larger one, or a smaller character coverage");
  for (const int64_t size : {-1, 0, 4, 260, 1'000'001})
    EXPECT_THAT(error(size),
                HasSubstr("must have 261 to 1000000 pieces, got " + std::to_string(size)));
  for (const double coverage : {0.0, 0.97, 1.01, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(error_of([&] {
                  SentencePiece::train(kLines,
                                       {.vocabulary_size = 300, .character_coverage = coverage});
                }),
                HasSubstr("character coverage must be 0.98 to 1"));
  }
  // Rare characters left out: there is room for others.
  const auto model =
      SentencePiece::train(kLines, {.vocabulary_size = 290, .character_coverage = 0.98});
  EXPECT_EQ(model.id(","), kUnknownId);
  EXPECT_NE(unigram().id(","), kUnknownId);
  EXPECT_EQ(model.decode(model.encode(kLines[6])), kLines[6]);
}

// rsennrich/subword-nmt#41
TEST(SentencePiece, RefusesTextsOfNothing) {
  for (const Lines& lines : {Lines{}, Lines{""}, Lines{" ", "\t", ""}}) {
    EXPECT_EQ(error_of([&] { SentencePiece::train(lines); }),
              "sentence_piece: there is no text to learn from, got " +
                  std::to_string(lines.size()) + " blank lines; give more");
  }
  EXPECT_EQ(SentencePiece::train(Lines{"x"}, {.vocabulary_size = 262}).encode("x").size(), 2u);
}

// rsennrich/subword-nmt#42
TEST(SentencePiece, RefusesLinesThatAreNotUtf8) {
  EXPECT_EQ(
      error_of([] {
        unigram().encode(
            "a\xff"
            "b");
      }),
      "sentence_piece: the line is not UTF-8, got byte 0xff at offset 1; convert it to UTF-8");
  EXPECT_EQ(error_of([] {
              SentencePiece::train(Lines{"a", "ab\xe2\x82"});
            }),
            "sentence_piece: line 2 is not UTF-8 at byte 2; convert it to UTF-8");
  for (const int32_t id : {-1, 295}) {
    EXPECT_EQ(error_of([&] { unigram().decode(std::vector<int32_t>{id}); }),
              "sentence_piece: id " + std::to_string(id) + " is outside 0..294");
  }
}

TEST(SentencePiece, ComesBackFromItsBytes) {
  for (const SentencePiece* model : {&unigram(), &byte_pairs(), &nfkc()}) {
    const SentencePiece back = SentencePiece::from_bytes(model->to_bytes());
    EXPECT_EQ(back, *model);
    EXPECT_EQ(back.to_bytes(), model->to_bytes());
    const std::string line = "Der  Hund ▁ ①";
    EXPECT_EQ(back.encode(line), model->encode(line));
    EXPECT_EQ(back.decode(back.encode(line)), model->decode(model->encode(line)));
  }
}

TEST(SentencePiece, RefusesDamagedBytes) {
  const std::string bytes = unigram().to_bytes();
  const auto error = [](const std::string& damaged) {
    return error_of([&] { SentencePiece::from_bytes(damaged); });
  };
  for (size_t size = 0; size < bytes.size(); size += size < 50 ? 1 : 31)
    EXPECT_NE(error(bytes.substr(0, size)), "") << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += bit < 400 ? 1 : 17) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(error(flipped), "") << bit;
  }
  EXPECT_THAT(error(bytes + "x"), HasSubstr("damaged"));
}

// Bytes with a right checksum whose content is wrong all the same.
TEST(SentencePiece, RefusesForeignBytes) {
  const auto error = [](uint32_t normalizer, const std::string& model, bool more = false) {
    StoredBytesWriter writer(SentencePiece::kStoredMark, 1);
    writer.number(normalizer);
    writer.block(model);
    if (more) writer.number(1);
    const std::string bytes = writer.finish();
    return error_of([&] { SentencePiece::from_bytes(bytes); });
  };
  const std::string stored = unigram().to_bytes();
  const std::string model =
      stored.substr(20, stored.size() - 24);  // mark, version, normaliser, size
  EXPECT_THAT(error(2, model), HasSubstr("normaliser must be 0 or 1, got 2"));
  EXPECT_THAT(error(0, model, true), HasSubstr("4 bytes follow"));
  EXPECT_EQ(error(0, "junk"),
            "sentence_piece: the 4 bytes of the model are none of this program's; restore the file "
            "from a copy");
  EXPECT_THAT(error(0, ""), HasSubstr("the 0 bytes of the model"));
  EXPECT_THAT(error(0, model.substr(0, model.size() / 2)), HasSubstr("none of this program's"));
  // Its first piece, <pad>, under another name.
  std::string renamed = model;
  renamed.replace(renamed.find("<pad>"), 5, "<PAD>");
  EXPECT_THAT(error(0, renamed), HasSubstr("none of this program's"));
}

}  // namespace
}  // namespace gs
