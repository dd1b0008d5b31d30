#include "models/split_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::read_file;

TEST(SplitFiles, HoldALineForEachPair) {
  const test::TemporaryDirectory folder;
  TranslationData data;
  data.train = {"train", {"not written"}, {"x"}};
  data.valid = {"valid", {"a b", "c"}, {"A B", "C"}};
  data.tests = {{"test", {"d"}, {"D"}}, {"test_2017.lc", {}, {}}};
  write_split_files(folder.path(), data);
  EXPECT_EQ(read_file(folder.file("valid.source")), "a b\nc\n");
  EXPECT_EQ(read_file(folder.file("valid.reference")), "A B\nC\n");
  EXPECT_EQ(read_file(folder.file("test.source")), "d\n");
  EXPECT_EQ(read_file(folder.file("test.reference")), "D\n");
  EXPECT_EQ(read_file(folder.file("test_2017.lc.source")), "");
  EXPECT_FALSE(std::filesystem::exists(folder.file("train.source")));

  // An empty translation has its line, and an older file is replaced.
  write_translation_file(folder.path(), "test", {"old"});
  write_translation_file(folder.path(), "test", {"E", "", "F f"});
  EXPECT_EQ(read_file(folder.file("test.translation")), "E\n\nF f\n");
}

TEST(SplitFiles, RefuseWhatWouldShiftTheLines) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("test.translation");
  EXPECT_EQ(error_of([&] { write_translation_file(folder.path(), "test", {"a\nb"}); }),
            "write lines: a line end inside a line of " + path);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace gs
