#include "framework/io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "framework/core/error.h"
#include "tests/support/support.h"

namespace gs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(AtomicFile, ReplacesTheOldFileAtCommitAlone) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("report.json", "old");
  std::ifstream reader(path);  // h5py/h5py#1082: a reader holds the old file
  AtomicFile file(path);
  file.write("new ");
  file.write(std::string(3, '\0'));
  file.flush();
  EXPECT_EQ(test::read_file(path), "old");
  EXPECT_EQ(test::read_file(file.temporary_path()), std::string("new \0\0\0", 7));
  EXPECT_EQ(fs::path(file.temporary_path()).parent_path(), folder.path());
  file.commit();
  EXPECT_EQ(test::read_file(path), std::string("new \0\0\0", 7));
  std::ostringstream seen;
  seen << reader.rdbuf();
  EXPECT_EQ(seen.str(), "old");
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("report.json"));
  EXPECT_THAT(test::error_of([&] { file.write("x"); }), HasSubstr("already committed"));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("a.txt", "old");
  { AtomicFile(path).write("half"); }
  EXPECT_EQ(test::read_file(path), "old");
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("a.txt"));
}

TEST(AtomicFile, WritesEmptyAndRelativeFiles) {
  const test::TemporaryDirectory folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file_atomically("empty.txt", "");
  fs::current_path(before);
  EXPECT_EQ(test::read_file(folder.file("empty.txt")), "");
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("empty.txt"));
}

TEST(AtomicFile, RefusesWhatARenameMustNotReplace) {
  const test::TemporaryDirectory folder;
  const std::string inner = folder.file("inner");
  fs::create_directory(inner);
  EXPECT_EQ(test::error_of([&] { write_file_atomically(inner, "x"); }),
            "save: " + inner + " is a folder; give the path of a file");
  EXPECT_EQ(test::error_of([&] { write_file_atomically(inner + "/", "x"); }),
            "save: " + inner + "/ is a folder; give the path of a file");
  EXPECT_EQ(test::error_of([&] { write_file_atomically("/dev/null", "x"); }),
            "save: /dev/null is not a regular file; give the path of a file");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const std::string missing = folder.file("missing/a.txt");
  EXPECT_EQ(test::error_of([&] { write_file_atomically(missing, "x"); }),
            "save: cannot write " + missing +
                ", No such file or directory; what stood there before is unchanged");
  EXPECT_THAT(test::error_of([&] { write_file_atomically("", "x"); }), HasSubstr("path is empty"));
  EXPECT_THAT(
      test::error_of([&] { write_file_atomically(folder.file(std::string(300, 'a')), ""); }),
      HasSubstr("File name too long"));
}

TEST(AtomicFile, RespectsWriteProtection) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("a.txt", "old");
  chmod(folder.path().c_str(), 0777);
  chmod(path.c_str(), 0444);
  const uid_t user = geteuid();
  if (user == 0) {  // root may write everywhere
    ASSERT_EQ(seteuid(65534), 0);
  }
  const std::string error = test::error_of([&] { write_file_atomically(path, "x"); });
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(error, "save: cannot write " + path +
                       ", Permission denied; what stood there before is unchanged");
  EXPECT_EQ(test::read_file(path), "old");
}

TEST(AtomicFile, FollowsLinksAndKeepsModes) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.write("a.txt", "old");
  chmod(path.c_str(), 0600);
  fs::create_symlink("a.txt", folder.file("link"));
  fs::create_symlink("later.txt", folder.file("dangling"));
  write_file_atomically(folder.file("link"), "new");
  write_file_atomically(folder.file("dangling"), "made");
  fs::create_symlink("circle", folder.file("circle"));
  EXPECT_THAT(test::error_of([&] { write_file_atomically(folder.file("circle"), "x"); }),
              HasSubstr("Too many levels of symbolic links"));
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(test::read_file(path), "new");
  EXPECT_EQ(test::read_file(folder.file("later.txt")), "made");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const mode_t mask = umask(027);
  write_file_atomically(folder.file("fresh"), "");
  umask(mask);
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder.file("fresh")).permissions()), 0640U);
}

TEST(AtomicFile, RemovesWhatAKilledWriterLeft) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.txt");
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(path);
    file.write("half");
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  ASSERT_EQ(names_in(folder.path()).size(), 1U);
  AtomicFile living(folder.file("b.txt"));
  living.write("b");
  EXPECT_EQ(names_in(folder.path()).size(), 1U) << "the leftover goes, whatever its name";
  write_file_atomically(path, "whole");
  living.commit();  // the second writer has left the first one's file alone
  EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("a.txt", "b.txt"));
  EXPECT_EQ(test::read_file(folder.file("b.txt")), "b");
}

TEST(LinkFileAtomically, ReplacesTheNameAndKeepsTheSource) {
  const test::TemporaryDirectory folder;
  const std::string source = folder.write("step_1.h5", "one");
  const std::string path = folder.write("last.h5", "zero");
  for (int repeat = 0; repeat < 2; ++repeat) {
    link_file_atomically(source, path);
    EXPECT_EQ(test::read_file(path), "one");
    EXPECT_THAT(names_in(folder.path()), testing::ElementsAre("last.h5", "step_1.h5"));
  }
  write_file_atomically(source, "two");
  EXPECT_EQ(test::read_file(path), "one") << "replacing one name leaves the other";
  const std::string missing = folder.file("missing");
  EXPECT_EQ(test::error_of([&] { link_file_atomically(missing, path); }),
            "save: cannot read " + missing + ", No such file or directory");
}

TEST(LinkFileAtomically, CopiesWhereNoLinkCanBe) {
  const test::TemporaryDirectory folder;
  const std::string source = "/dev/shm/gradstone_" + std::to_string(getpid());
  std::ofstream(source) << std::string(3 << 20, 'x');
  if (!fs::exists(source)) GTEST_SKIP() << "no second file system here";
  link_file_atomically(source, folder.file("copy"));
  fs::remove(source);
  EXPECT_EQ(test::read_file(folder.file("copy")), std::string(3 << 20, 'x'));
}

}  // namespace
}  // namespace gs
