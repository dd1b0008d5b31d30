#include "models/tokenizer_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::HasSubstr;
using Lines = std::vector<std::string>;

const Lines kSource{"a dog", "a cat"}, kTarget{"ein hund", "eine katze"};

TokenizerSettings with_unit(const std::string& unit) {
  TokenizerSettings settings;
  settings.unit = unit;
  return settings;
}

TEST(TokenizerSettings, WordsAndCharacters) {
  const auto [source, target] = with_unit("word").tokenizers(kSource, kTarget, false);
  EXPECT_EQ(source.size(), 4 + 3);
  EXPECT_EQ(target.size(), 4 + 4);
  const auto [both, same] = with_unit("word").tokenizers(kSource, kTarget, true);
  EXPECT_EQ(both.size(), 4 + 7);
  EXPECT_EQ(both, same);
  const auto [letters, _] = with_unit("character").tokenizers(kSource, kTarget, false);
  EXPECT_EQ(letters.size(), 4 + 7);
  TokenizerSettings settings;
  settings.minimum_count = 2;
  EXPECT_EQ(settings.tokenizers(kSource, kSource, false).first.size(), 4 + 1);
}

TEST(TokenizerSettings, BytePairs) {
  const test::TemporaryDirectory folder;
  TokenizerSettings settings = with_unit("byte-pair");
  settings.codes = folder.write("codes", "#version: 0.2\ne i\nei n\nein </w>\nei n</w>\n");
  const auto [source, target] = settings.tokenizers(kSource, kTarget, false);
  EXPECT_EQ(source.encode("a dog").size(), 4u);
  EXPECT_EQ(target.decode(target.encode("ein hund")), "ein hund");
  EXPECT_EQ(target.token(target.encode("ein hund")[0]), "ein");
  EXPECT_EQ(source.id("ein"), kUnknownId);
  const auto [both, same] = settings.tokenizers(kSource, kTarget, true);
  EXPECT_EQ(both, same);
  EXPECT_EQ(both.decode(both.encode("eine dog")), "eine dog");
  // The limits are those of the pieces.
  settings.maximum_vocabulary = 6;
  EXPECT_EQ(settings.tokenizers(kSource, kTarget, false).second.size(), 6);
  settings.minimum_count = 2;
  settings.maximum_vocabulary = 0;
  EXPECT_LT(settings.tokenizers(kSource, kTarget, false).first.size(), source.size());
}

TEST(TokenizerSettings, BytePairsAreLearnedWhereNoneAreGiven) {
  TokenizerSettings settings = with_unit("byte-pair");
  settings.merges = 1;
  const std::vector<std::string> lines{"low low lower", "der dem"};
  const auto [source, target] = settings.tokenizers(lines, kTarget, false);
  // The merge is "l o", which occurs three times.
  EXPECT_EQ(source.token(source.encode("low")[0]), "lo@@");
  EXPECT_EQ(source.decode(source.encode("lower dem")), "lower dem");
}

TEST(TokenizerSettings, SentencePieces) {
  TokenizerSettings settings = with_unit("sentencepiece");
  settings.subword_size = 272;
  settings.subword_model = "bpe";
  const auto [source, target] = settings.tokenizers(kSource, kTarget, false);
  EXPECT_EQ(source.size(), 272);
  EXPECT_EQ(target.size(), 272);
  EXPECT_FALSE(source == target);
  EXPECT_EQ(target.decode(target.encode("eine  Katze")), "eine  Katze");
  settings.subword_size = 275;
  const auto [both, same] = settings.tokenizers(kSource, kTarget, true);
  EXPECT_EQ(both, same);
  settings.subword_normalizer = "nmt_nfkc";
  const Tokenizer normal = settings.tokenizers(kSource, kTarget, true).first;
  EXPECT_EQ(normal.decode(normal.encode("eine  Katze")), "eine Katze");
  // The two models learn different pieces.
  settings.subword_model = "unigram";
  EXPECT_FALSE(settings.tokenizers(kSource, kTarget, true).first == normal);
}

TEST(TokenizerSettings, RefuseWhatDoesNotGoTogether) {
  const auto error = [](const TokenizerSettings& settings) {
    return error_of([&] { settings.tokenizers(kSource, kTarget, false); });
  };
  TokenizerSettings settings = with_unit("byte-pair");
  settings.codes = "no/such/codes";
  EXPECT_THAT(error(settings), HasSubstr("no/such/codes"));
  settings.unit = "word";
  EXPECT_EQ(error(settings),
            "--codes: is of no use with --unit word, got no/such/codes; add --unit byte-pair");
  settings = with_unit("word");
  settings.merges = 5;
  EXPECT_EQ(error(settings),
            "--merges: is of no use with --codes, nor with --unit word, got 5; leave it out");
  settings.unit = "byte-pair";
  settings.codes = "codes";
  EXPECT_THAT(error(settings), HasSubstr("--merges: is of no use with --codes"));
  for (auto field : {&TokenizerSettings::minimum_count, &TokenizerSettings::maximum_vocabulary}) {
    settings = with_unit("sentencepiece");
    settings.*field = 50;
    EXPECT_THAT(error(settings), HasSubstr("are of no use with --unit sentencepiece"));
  }
  const auto error_of_word = [&](auto change) {
    settings = with_unit("word");
    change(settings);
    return error(settings);
  };
  const auto no_use = HasSubstr("are of no use with --unit word; add --unit sentencepiece");
  EXPECT_THAT(error_of_word([](TokenizerSettings& s) { s.subword_size = 500; }), no_use);
  EXPECT_THAT(error_of_word([](TokenizerSettings& s) { s.subword_model = "bpe"; }), no_use);
  EXPECT_THAT(error_of_word([](TokenizerSettings& s) { s.subword_normalizer = "nmt_nfkc"; }),
              no_use);
}

}  // namespace
}  // namespace gs
