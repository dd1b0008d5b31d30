#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "tests/examples/translation_programs.h"
#include "tests/support/paths.h"

namespace gs {
namespace {

using test::CommandResult;
using test::kSmall;
using test::run_command;
using test::run_program;
using test::TemporaryDirectory;

// On another device it says so first.
const std::string kProgram = test::program("translate") + " --device cpu";

// A model that has learned next to nothing: forms are tested here, not translations.
class Translate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    const CommandResult result =
        run_program("train_translation", "--device cpu --output " + folder_->file("run") + kSmall +
                                             "--steps 100 --maximum-length 40");
    ASSERT_EQ(result.status, 0) << result.output;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static CommandResult translate(const std::string& input, const std::string& arguments = "") {
    const std::string file = folder_->write("input", input);
    return run_command(kProgram + " --model " + folder_->file("run/best.h5") + " " + arguments +
                       " < " + file);
  }

  static TemporaryDirectory* folder_;
};
TemporaryDirectory* Translate::folder_ = nullptr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size();) {
    const size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

// marian-nmt/marian-dev#357, OpenNMT/OpenNMT#77: blank lines were dropped or hallucinated.
TEST_F(Translate, GivesALineForALineInOrder) {
  const CommandResult result = translate(
      "the dog sleeps .\n\n   \n\u00a0\nthe cat sleeps .\r\nthe man sleeps .", "--batch-lines 2");
  ASSERT_EQ(result.status, 0);
  const std::vector<std::string> lines = lines_of(result.output);
  ASSERT_EQ(lines.size(), 6u) << result.output;
  EXPECT_EQ(lines[1] + lines[2] + lines[3], "");
  for (const size_t i : {0, 4, 5}) {
    const char* inputs[] = {"the dog sleeps .", "", "", "", "the cat sleeps .", "the man sleeps ."};
    EXPECT_EQ(translate(std::string(inputs[i]) + "\n").output, lines[i] + "\n");
  }
}

TEST_F(Translate, GivesNBestWithScoresInOrder) {
  const CommandResult result = translate("the dog sleeps .\n", "--beam 4 --nbest 3 --scores");
  const std::vector<std::string> lines = lines_of(result.output);
  ASSERT_EQ(lines.size(), 3u) << result.output;
  std::vector<double> scores;
  for (const std::string& line : lines) {
    ASSERT_NE(line.find('\t'), std::string::npos);
    scores.push_back(std::stod(line));
  }
  EXPECT_TRUE(std::is_sorted(scores.rbegin(), scores.rend()));
  EXPECT_LT(scores[2], 0);
}

// Readers count on N lines for a line.
TEST_F(Translate, GivesNBestOfBlankLinesToo) {
  const std::vector<std::string> lines =
      lines_of(translate("\nthe dog sleeps .\n \n", "--beam 4 --nbest 3 --scores").output);
  ASSERT_EQ(lines.size(), 9u);
  for (const size_t i : {0, 1, 2, 6, 7, 8}) EXPECT_EQ(lines[i], "0.0000\t");
  EXPECT_NE(lines[3], "0.0000\t");
}

TEST_F(Translate, ShowsATableOfTheAttention) {
  const CommandResult result = translate("the dog sleeps .\n", "--attention");
  const std::vector<std::string> lines = lines_of(result.output);
  ASSERT_GE(lines.size(), 3u);
  for (const char* word : {"the", "dog", "sleeps", "</s>"})
    EXPECT_NE(lines[1].find(word), std::string::npos);
  EXPECT_NE(lines.back().find("</s>"), std::string::npos);
}

TEST_F(Translate, RefusesLinesThatItCannotTranslate) {
  const CommandResult invalid = translate(
      "the dog sleeps .\na\xff"
      "b\n");
  EXPECT_EQ(invalid.status, 2);
  const std::vector<std::string> lines = lines_of(invalid.output);
  ASSERT_EQ(lines.size(), 2u) << "the line before is translated";
  EXPECT_EQ(lines[1], "translate: standard input: line 2 is not UTF-8 at byte 1; convert it first");
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "dog ";
  const CommandResult too_long = translate("the dog sleeps .\n" + longer + "\n");
  EXPECT_EQ(too_long.status, 2);
  EXPECT_EQ(lines_of(too_long.output).back(),
            "translate: standard input: line 2 has 40 tokens, the model takes 39; split it");
}

TEST_F(Translate, GivesEmptyLinesForTooLongOnesWhereAsked) {
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "dog ";
  const std::string input = "the dog sleeps .\n" + longer + "\n\nthe cat sleeps .\n";
  const CommandResult result =
      translate(input, "--too-long empty --beam 2 --nbest 2 2> " + folder_->file("warnings"));
  EXPECT_EQ(result.status, 0);
  const std::vector<std::string> lines = lines_of(result.output);
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[2] + lines[3] + lines[4] + lines[5], "");
  EXPECT_EQ(test::read_file(folder_->file("warnings")),
            "translate: standard input: line 2 has 40 tokens, the model takes 39; it gives an "
            "empty line\n");
  const std::string file = folder_->write("long", input);
  EXPECT_EQ(translate("", "--beam 2 --nbest 2 --too-long empty --input " + file).output,
            "translate: " + file + ": line 2 has 40 tokens, the model takes 39; it gives an " +
                "empty line\n" + result.output);
}

TEST_F(Translate, ReadsAndWritesFiles) {
  const std::string text = "the dog sleeps .\n\nthe cat sleeps .\nthe man sees the dog .";
  const std::string input = folder_->write("in.txt", text), output = folder_->file("out.txt");
  const CommandResult result = translate("", "--input " + input + " --output " + output);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(test::read_file(output), translate(text).output);
  // A last line that cannot be translated is found before the work, and the old output stays.
  const std::string before = test::read_file(output);
  const std::string bad = folder_->write("bad.txt", text + "\na\xff\n");
  const CommandResult refused = translate("", "--input " + bad + " --output " + output);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output,
            "translate: " + bad + ": line 5 is not UTF-8 at byte 1; convert it first\n");
  EXPECT_EQ(test::read_file(output), before);
  EXPECT_EQ(translate("", "--input " + bad).output, refused.output) << "nothing is translated";
  EXPECT_EQ(translate("", "--input nowhere.txt").output,
            "translate: --input: nowhere.txt cannot be read, No such file or directory\n");
  EXPECT_EQ(translate("", "--input /tmp").output,
            "translate: --input: /tmp cannot be read, it is a folder\n");
  EXPECT_EQ(translate("", "--input " + input + " --output /tmp").output,
            "translate: save: /tmp is a folder; give the path of a file\n");
  // A file may take the place of its own input, and an empty one gives an empty one.
  EXPECT_EQ(translate("", "--input " + input + " --output " + input).status, 0);
  EXPECT_EQ(test::read_file(input), before);
  const std::string empty = folder_->write("empty.txt", "");
  EXPECT_EQ(translate("", "--input " + empty + " --output " + output).status, 0);
  EXPECT_EQ(test::read_file(output), "");
}

TEST_F(Translate, SearchesAsAsked) {
  const auto words = [&](const std::string& arguments) {
    const std::string line = translate("the dog sleeps .\n", arguments).output;
    return std::count(line.begin(), line.end(), ' ') + (line.size() > 1 ? 1 : 0);
  };
  EXPECT_EQ(words("--minimum-length 9 --maximum-length 9"), 9);
  EXPECT_LE(words("--maximum-length 2"), 2);
  EXPECT_GE(words("--minimum-length 12"), 12);
  EXPECT_LE(words("--minimum-length 30 --length-factor 1 --length-extra 2"), 7);
  const std::string distinct =
      translate("the dog sleeps .\n", "--minimum-length 20 --no-repeat 1 --alpha 0").output;
  std::istringstream stream(distinct);
  std::vector<std::string> found{std::istream_iterator<std::string>(stream), {}};
  EXPECT_GE(found.size(), 2u);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(std::adjacent_find(found.begin(), found.end()), found.end()) << distinct;
  // log p / ((5 + l) / 6)^alpha against log p / l^alpha, of the same l.
  const auto score = [&](const std::string& arguments) {
    return std::stod(translate("the dog sleeps .\n",
                               "--scores --minimum-length 7 --maximum-length 7 " + arguments)
                         .output);
  };
  const double log_probability = score("--alpha 0");
  EXPECT_NEAR(score("--alpha 0.5"), log_probability / std::sqrt(8.0), 1e-4);
  EXPECT_NEAR(score("--alpha 0.5 --length-penalty gnmt"), log_probability / std::sqrt(13.0 / 6),
              1e-4);
}

TEST_F(Translate, RefusesWrongOptionsAndFiles) {
  EXPECT_EQ(translate("a\n", "--minimum-length 5 --maximum-length 4").output,
            "translate: search: the minimum length must be at most the maximum, got 5 and 4\n");

  EXPECT_EQ(translate("a\n", "--beam 2 --nbest 3").output,
            "translate: --nbest: must be at most the beam, got 3 and 2\n");
  const CommandResult missing = run_command("echo a | " + kProgram + " --model nowhere.h5");
  EXPECT_EQ(missing.status, 2);
  EXPECT_EQ(missing.output, "translate: load: cannot read nowhere.h5, No such file or directory\n");
  const std::string text = folder_->write("text", "hello\n");
  EXPECT_EQ(run_command("echo a | " + kProgram + " --model " + text).output,
            "translate: load: " + text +
                " is not a checkpoint of Gradstone, or its first bytes are damaged\n");
  EXPECT_EQ(run_command(kProgram + " --help").status, 0);
}

TEST_F(Translate, AnswersEachLineAtOnce) {
  // The second line is sent only when the first has been answered.
  const std::string pipe = folder_->file("pipe"), answers = folder_->file("answers");
  const CommandResult result = run_command(
      "mkfifo " + pipe + "; timeout 20 " + kProgram + " --model " + folder_->file("run/best.h5") +
      " --batch-lines 1 < " + pipe + " > " + answers + " & exec 3> " + pipe +
      "; echo 'the dog sleeps .' >&3; for i in $(seq 200); do [ -s " + answers +
      " ] && break; sleep 0.05; done; [ -s " + answers +
      " ] && echo answered; echo 'the cat sleeps .' >&3; exec 3>&-; wait; wc -l < " + answers);
  EXPECT_EQ(result.output, "answered\n2\n");
}

TEST_F(Translate, EndsQuietlyWhenTheReaderDoes) {
  const CommandResult result =
      run_command("yes 'the dog sleeps .' | head -3000 | " + kProgram + " --model " +
                  folder_->file("run/best.h5") + " --batch-lines 8 | head -1");
  EXPECT_EQ(lines_of(result.output).size(), 1u) << result.output;
}

}  // namespace
}  // namespace gs
