#include <gtest/gtest.h>

#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::run_command;
using test::run_program;
using test::TemporaryDirectory;

const std::string kCodes = "#version: 0.2\nl o\nlo w\ne r</w>\nlow er</w>\nä ß</w>\n@ @</w>\n";

struct Tokenize : testing::Test {
  TemporaryDirectory folder;

  CommandResult tokenize(const std::string& input, const std::string& arguments) const {
    return run_command(test::program("tokenize ") + arguments + " < " +
                       folder.write("input", input));
  }
  // Two steps on the toy corpus: its tokens are what counts here.
  std::string model(const std::string& options) const {
    const CommandResult result =
        run_program("train_translation", "--output " + folder.file("run") + test::kSmall +
                                             "--steps 2 --minimum-count 2 " + options);
    EXPECT_EQ(result.status, 0) << result.output;
    return "--model " + folder.file("run/last.h5 ");
  }
};

TEST_F(Tokenize, SplitsIntoBytePairsAndBack) {
  const std::string codes = "--codes " + folder.write("codes", kCodes);
  const std::string text = "lower low  äß\r\n\n \n@@ .";
  const CommandResult pieces = tokenize(text, codes);
  EXPECT_EQ(pieces.output, "lower lo@@ w äß\n\n\n@@@ @ .\n");
  EXPECT_EQ(pieces.status, 0);
  EXPECT_EQ(tokenize(pieces.output, codes + " --decode").output, "lower low äß\n\n\n@@ .\n");
}

TEST_F(Tokenize, ShowsTheTokensOfAModel) {
  const std::string words = model("");
  EXPECT_EQ(tokenize("the  dog qqq .\n\n", words).output, "the dog <unk> .\n\n");
  EXPECT_EQ(tokenize("der Hund\n", words + "--side target").output, "der Hund\n");
  EXPECT_EQ(tokenize("der  Hund\n", words + "--side target --decode").output, "der Hund\n");
}

TEST_F(Tokenize, ShowsTheBytePairsOfAModel) {
  const std::string pairs =
      model("--unit byte-pair --codes " + folder.write("codes", "#version: 0.2\nt h\nth e</w>\n"));
  const std::string pieces = tokenize("the dog .\n", pairs).output;
  EXPECT_EQ(pieces, "the d@@ o@@ g .\n");
  EXPECT_EQ(tokenize(pieces, pairs + "--decode").output, "the dog .\n");
}

TEST_F(Tokenize, ShowsThePiecesOfAModel) {
  const CommandResult result =
      run_program("train_translation", "--output " + folder.file("run") + test::kSmall +
                                           "--steps 2 --unit sentencepiece --subword-size 330");
  ASSERT_EQ(result.status, 0) << result.output;
  const std::string model = "--model " + folder.file("run/last.h5 ");
  const std::string text = "the dog ▁ \u72d7 .\n\n";
  const std::string pieces = tokenize(text, model).output;
  EXPECT_EQ(pieces.rfind("▁the ▁", 0), 0u) << pieces;
  EXPECT_NE(pieces.find(" <0xE7> <0x8B> <0x97> "), std::string::npos) << pieces;
  EXPECT_EQ(tokenize(pieces, model + "--decode").output, text);
}

TEST_F(Tokenize, CharactersHaveNoWayBack) {
  const std::string characters = model("--unit character");
  EXPECT_EQ(tokenize("a b\n", characters).output, "a   b\n");
  const CommandResult refused = tokenize("a   b\n", characters + "--decode");
  EXPECT_EQ(refused.output, "tokenize: --decode: the tokens of " + folder.file("run/last.h5") +
                                " are single characters, spaces among them; leave --decode out\n");
  EXPECT_EQ(refused.status, 2);
}

// rsennrich/subword-nmt#42
TEST_F(Tokenize, RefusesLinesThatAreNotUtf8) {
  const CommandResult result = tokenize(
      "low\na\xff"
      "b\nlow\n",
      "--codes " + folder.write("codes", kCodes));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output,
            "lo@@ w\ntokenize: standard input: line 2 is not UTF-8 at byte 1; convert it first\n");
}

TEST_F(Tokenize, RefusesWrongOptionsAndFiles) {
  const std::string both = "tokenize: --codes and --model: give one of them\n";
  EXPECT_EQ(tokenize("", "").output, both);
  EXPECT_EQ(tokenize("", "--codes a --model b").output, both);
  const CommandResult missing = tokenize("", "--codes " + folder.file("none"));
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(missing.output.find(folder.file("none")), std::string::npos);
  const std::string bad = folder.write("bad", "#version: 0.2\na b\nc\n");
  EXPECT_EQ(tokenize("", "--codes " + bad).output,
            "tokenize: byte_pairs: " + bad +
                ":3 must hold two symbols with a space between, got 1; give a codes file of "
                "subword-nmt learn-bpe\n");
}

}  // namespace
}  // namespace gs
