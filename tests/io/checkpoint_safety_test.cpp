#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "framework/core/error.h"
#include "framework/io/checkpoint.h"
#include "tests/io/example_checkpoint.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::example_checkpoint;

Checkpoint large_checkpoint(int64_t step, int64_t elements) {
  Checkpoint checkpoint = example_checkpoint(step);
  checkpoint.parameters["large"] = Array::full({elements}, static_cast<double>(step), kFloat32);
  return checkpoint;
}

// Runs `body` in a process of its own; its exit status, or 128 + the signal that ended it.
int status_of_child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int files_in(const std::filesystem::path& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// 0 where saving fails with `reason`, again the second time, and a small file can still be saved.
int save_on_full_disk(const std::string& path, const std::string& reason) {
  const std::string expected =
      "save: cannot write " + path + ", " + reason + "; what stood there before is unchanged";
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      save_checkpoint(path, large_checkpoint(2, 1 << 20));
      return 1;
    } catch (const Error& error) {
      if (error.what() != expected) return std::fprintf(stderr, "%s\n", error.what()), 2;
    }
  }
  save_checkpoint(path + ".small", example_checkpoint(3));
  return std::get<int64_t>(load_training_values(path + ".small").at("step")) == 3 ? 0 : 3;
}

// PyTables/PyTables#695, h5py/h5py#914, Lightning-AI/pytorch-lightning#688, pytorch/pytorch#2883
TEST(CheckpointSafety, ALimitOnFileSizesLeavesTheOldFile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.h5");
  save_checkpoint(path, example_checkpoint(1));
  const std::string before = test::read_file(path);
  for (const rlim_t limit : {100, 512, 600, 1 << 20}) {
    const bool small_fits = limit > before.size();
    const int status = status_of_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit limits = {limit, limit};
      setrlimit(RLIMIT_FSIZE, &limits);
      if (small_fits) return save_on_full_disk(path, "File too large");
      return test::error_of([&] {
               save_checkpoint(path, example_checkpoint(2));
             }).find("File too large") == std::string::npos
                 ? 1
                 : 0;
    });
    EXPECT_EQ(status, 0) << limit;
    EXPECT_EQ(test::read_file(path), before);
    EXPECT_EQ(files_in(folder.path()), small_fits ? 2 : 1) << "no temporary file stays";
  }
}

TEST(CheckpointSafety, AFullDiskLeavesTheOldFile) {
  const test::TemporaryDirectory folder;
  if (mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "no right to mount a small file system";
  const std::string path = folder.file("a.h5");
  save_checkpoint(path, example_checkpoint(1));
  const std::string before = test::read_file(path);
  EXPECT_EQ(status_of_child([&] { return save_on_full_disk(path, "No space left on device"); }), 0);
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(files_in(folder.path()), 2);
  umount(folder.path().c_str());
}

// A kill while files are written and replaced: the name always leads to a whole file.
TEST(CheckpointSafety, AKillLeavesALoadableFile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.h5");
  constexpr int64_t elements = 200000;
  const auto begin = std::chrono::steady_clock::now();
  save_checkpoint(path, large_checkpoint(0, elements));
  const std::chrono::duration<double> one_save = std::chrono::steady_clock::now() - begin;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> saves(0, 6);
  std::set<int64_t> seen;
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) {
      for (int64_t step = 0;; ++step) save_checkpoint(path, large_checkpoint(step, elements));
    }
    std::this_thread::sleep_for(one_save * saves(random));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Checkpoint checkpoint = load_checkpoint(path);
    const int64_t step = std::get<int64_t>(checkpoint.training.at("step"));
    test::expect_same(large_checkpoint(step, elements), checkpoint);
    seen.insert(step);
    EXPECT_LE(files_in(folder.path()), 2) << "leftovers do not pile up";
  }
  EXPECT_GT(seen.size(), 1U) << "the children have saved nothing";
  save_checkpoint(path, example_checkpoint(7));
  EXPECT_EQ(files_in(folder.path()), 1);
}

// h5py/h5py#1082, PyTables/PyTables#888, HDFGroup/hdf5#3311: no locks between readers and writers.
TEST(CheckpointSafety, ReadersAndWritersDoNotMeet) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.h5");
  save_checkpoint(path, large_checkpoint(0, 50000));
  const pid_t writer = fork();
  if (writer == 0) {
    for (int64_t step = 1; step <= 30; ++step) save_checkpoint(path, large_checkpoint(step, 50000));
    _exit(0);
  }
  int64_t last = 0;
  for (int status = 0; waitpid(writer, &status, WNOHANG) == 0;) {
    const int64_t step = std::get<int64_t>(load_training_values(path).at("step"));
    EXPECT_GE(step, last);
    last = step;
  }
  EXPECT_EQ(std::get<int64_t>(load_checkpoint(path).training.at("step")), 30);
}

TEST(CheckpointSafety, ThreadsMaySaveAndLoadAtOnce) {
  const test::TemporaryDirectory folder;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string path = folder.file(fmt::format("{}.h5", i));
      for (int64_t step = 0; step < 10; ++step) {
        save_checkpoint(path, example_checkpoint(100 * i + step));
        test::expect_same(example_checkpoint(100 * i + step), load_checkpoint(path));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(files_in(folder.path()), 4);
}

}  // namespace
}  // namespace gs
