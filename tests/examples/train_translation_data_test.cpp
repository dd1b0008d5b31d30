// What train_translation does with text files: what it leaves out, holds out, refuses and writes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/examples/translation_programs.h"

namespace gs {
namespace {

using test::CommandResult;
using test::kSmall;
using test::run_program;
using test::TemporaryDirectory;

CommandResult train(const std::string& output, const std::string& arguments) {
  return run_program("train_translation", "--output " + output + kSmall + arguments);
}

void expect_text(const CommandResult& result, const std::string& text) {
  EXPECT_NE(result.output.find(text), std::string::npos) << result.output;
}

const std::string kLongSentence = "dog 1 2 3 4 5 6 7 8 9 10 11\tHund\n";

// Forty source sentences with two translations each, and one pair that is too long for the model.
std::string sentences() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    const std::string dog = "dog " + std::to_string(i), hund = "Hund " + std::to_string(i);
    text.append(dog + "\t" + hund + "\n").append(dog + "\tder " + hund + "\n");
  }
  return text + kLongSentence;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TrainTranslationData, KeepsHeldOutSentencesAndTheirTranslationsAsFiles) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const CommandResult result =
      train(output, "--train-source " + folder.write("pairs.tsv", sentences()) +
                        " --held-out-test 8 --test-source " +
                        folder.write("small.tsv", "dog x\tHund x\n\n\tblank\ncat\tKatze\n") + "," +
                        folder.write("other.tsv", "a\tb\n") +
                        " --steps 4 --validate-every 2 --maximum-length 12");
  ASSERT_EQ(result.status, 0) << result.output;
  expect_text(result,
              "held out by source sentence: 6 pairs of 3 sentences for validation, 8 pairs of 4 "
              "sentences for the test; 67 pairs of 34 sentences are left for training");
  expect_text(result,
              "train: 1 pair is left out, longer than 11 tokens (--maximum-length counts an end "
              "mark more): line 81 (12 and 1)");
  const auto summary = nlohmann::json::parse(test::read_file(output + "/summary.json"));
  for (const auto& [name, count] :
       std::map<std::string, size_t>{{"test", 8}, {"small", 2}, {"other", 1}}) {
    for (const char* kind : {".source", ".reference", ".translation"})
      EXPECT_EQ(lines_of(output + "/" + name + kind).size(), count) << name << kind;
    EXPECT_TRUE(summary["bleu"].contains(name)) << name;
  }
  EXPECT_EQ(lines_of(output + "/small.source"), (std::vector<std::string>{"dog x", "cat"}));
  std::set<std::string> held;
  for (const char* name : {"/valid.source", "/test.source"}) {
    const auto lines = lines_of(output + name);
    held.insert(lines.begin(), lines.end());
  }
  EXPECT_EQ(held.size(), 7u);  // the sentences of 6 and of 8 pairs
}

TEST(TrainTranslationData, ChecksDataAndStops) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const std::string data =
      "--maximum-length 12 --train-source " + folder.write("pairs.tsv", sentences());
  const CommandResult result = train(output, data + " --check-data");
  ASSERT_EQ(result.status, 0) << result.output;
  expect_text(result, "train: 1 pair is left out");
  expect_text(result, "\ntrain                       74 |        148    2.0       2 ");
  expect_text(result, "\n6000 steps take 2000 epochs\n");  // 74 pairs in batches of 32
  EXPECT_FALSE(std::filesystem::exists(output));

  // A test file that would lose a sentence is refused before anything is trained.
  const CommandResult refused = train(
      output, data + " --test-source " + folder.write("t.tsv", "dog\tHund\n" + kLongSentence));
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.output,
            "train_translation: data: the test t has 1 source sentences of more than 11 tokens, "
            "got 12 in line 2; give --maximum-length 13 or more\n");
  EXPECT_FALSE(std::filesystem::exists(output));
}

// What is held out now was trained on before.
TEST(TrainTranslationData, ResumingRefusesAnotherSplit) {
  const TemporaryDirectory folder;
  const std::string output = folder.file("run");
  const std::string data = "--maximum-length 12 --held-out-test 8 --train-source " +
                           folder.write("pairs.tsv", sentences());
  ASSERT_EQ(train(output, data + " --steps 4").status, 0);
  const CommandResult refused =
      run_program("train_translation", "--output " + output + " --resume --steps 8 --split-seed 2");
  EXPECT_EQ(refused.status, 2);
  expect_text(refused, "/last.h5 was trained on other pairs than these 66; use the same files");
}

}  // namespace
}  // namespace gs
