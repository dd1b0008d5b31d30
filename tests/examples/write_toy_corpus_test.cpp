#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "datasets/toy_corpus.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace gs {
namespace {

namespace fs = std::filesystem;

test::CommandResult run(const std::string& arguments) {
  return test::run_command(test::program("write_toy_corpus ") + arguments);
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(WriteToyCorpus, WritesFourFilesOfEachSplit) {
  const test::TemporaryDirectory folder;
  const std::string output = folder.file("new/corpus");
  const auto result = run("--level 2 --seed 7 --split iid,pair --count 20 --output " + output);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(files_in(output),
            (std::vector<std::string>{"iid.align", "iid.de", "iid.en", "iid.tags", "pair.align",
                                      "pair.de", "pair.en", "pair.tags"}));
  std::string source, target, links, tags;
  for (const ToyPair& pair : toy_pairs(7, 2, "pair", 20)) {
    source += pair.source + "\n";
    target += pair.target + "\n";
    for (size_t i = 0; i < pair.alignment.size(); ++i)
      links += (i > 0 ? " " : "") + std::to_string(pair.alignment[i].first) + "-" +
               std::to_string(pair.alignment[i].second);
    links += "\n";
    for (size_t i = 0; i < pair.tags.size(); ++i) tags += (i > 0 ? " " : "") + pair.tags[i];
    tags += "\n";
  }
  EXPECT_EQ(test::read_file(output + "/pair.en"), source);
  EXPECT_EQ(test::read_file(output + "/pair.de"), target);
  EXPECT_EQ(test::read_file(output + "/pair.align"), links);
  EXPECT_EQ(test::read_file(output + "/pair.tags"), tags);
}

TEST(WriteToyCorpus, WritesEverySplitOfTheLevelUnlessToldOtherwise) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(run("--level 1 --count 0 --output " + folder.file("1")).status, 0);
  EXPECT_EQ(files_in(folder.file("1")).size(), 16u);
  EXPECT_EQ(test::read_file(folder.file("1/train.en")), "");
  EXPECT_EQ(run("--level 3 --count 1 --output " + folder.file("3")).status, 0);
  EXPECT_EQ(files_in(folder.file("3")).size(), 24u);
}

TEST(WriteToyCorpus, RefusesBadOptionsInOneLineAndWritesNothing) {
  const test::TemporaryDirectory folder;
  for (const std::string bad :
       {"--level 0", "--level 4", "--count -1", "--split test", "--split iid,iid", "--split ''",
        "--level 1 --split nested", "--seed x", "--nonsense 1"}) {
    const auto result = run(bad + " --output " + folder.file("corpus"));
    EXPECT_EQ(result.status, 2) << bad << ": " << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
    EXPECT_TRUE(files_in(folder.path()).empty()) << bad;
  }
}

TEST(WriteToyCorpus, LeavesOldFilesAndNoRemainsWhenItFails) {
  const test::TemporaryDirectory folder;
  folder.write("plain", "not a folder");
  EXPECT_EQ(run("--output " + folder.file("plain")).status, 2);
  EXPECT_EQ(test::read_file(folder.file("plain")), "not a folder");
  // The second file cannot be opened: the first one keeps its old content.
  fs::create_directories(folder.path() / "corpus" / "iid.de.partial");
  const std::string old = folder.write("corpus/iid.en", "old\n");
  const auto result = run("--split iid --count 5 --output " + folder.file("corpus"));
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  EXPECT_EQ(test::read_file(old), "old\n");
  EXPECT_EQ(files_in(folder.path() / "corpus"),
            (std::vector<std::string>{"iid.de.partial", "iid.en"}));
}

// A full disk: every write to /dev/full fails.
TEST(WriteToyCorpus, NoticesAFullDisk) {
  const test::TemporaryDirectory folder;
  fs::create_directories(folder.path() / "corpus");
  fs::create_symlink("/dev/full", folder.path() / "corpus" / "iid.en.partial");
  const auto result = run("--split iid --count 50 --output " + folder.file("corpus"));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.output.find("iid.en.partial"), std::string::npos) << result.output;
  EXPECT_TRUE(files_in(folder.path() / "corpus").empty());
}

}  // namespace
}  // namespace gs
