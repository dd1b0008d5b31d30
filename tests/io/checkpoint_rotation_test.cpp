#include "framework/io/checkpoint_rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "framework/io/atomic_file.h"
#include "tests/io/example_checkpoint.h"
#include "tests/support/support.h"

namespace gs {
namespace {

namespace fs = std::filesystem;
using test::example_checkpoint;
using testing::ElementsAre;
using testing::HasSubstr;

int64_t step_in(const std::string& path) {
  return std::get<int64_t>(load_training_values(path).at("step"));
}

class CheckpointRotationTest : public testing::Test {
 protected:
  CheckpointRotation rotation(int64_t keep, bool lower_is_better = true) const {
    return CheckpointRotation(
        {.folder = folder_.file("run"), .keep = keep, .lower_is_better = lower_is_better});
  }

  test::TemporaryDirectory folder_;
};

// huggingface/transformers#11748, OpenPipe/ART#117, marian-nmt/marian-dev#636
TEST_F(CheckpointRotationTest, KeepsTheNewestAndTheBest) {
  CheckpointRotation kept = rotation(2);
  int64_t step = 0;
  for (const double metric : {0.5, 0.7, 0.8, 0.9}) {
    ++step;
    kept.save(step, example_checkpoint(step), metric);
    EXPECT_EQ(step_in(kept.last_path()), step);
    EXPECT_EQ(step_in(kept.best_path()), 1);
  }
  EXPECT_THAT(kept.steps(), ElementsAre(1, 3, 4));
  EXPECT_EQ(kept.best_step(), 1);
  EXPECT_TRUE(fs::equivalent(kept.best_path(), kept.path_of(1)));
  EXPECT_TRUE(fs::equivalent(kept.last_path(), kept.path_of(4)));
  EXPECT_EQ(std::get<double>(load_training_values(kept.path_of(3)).at("metric")), 0.8);
}

TEST_F(CheckpointRotationTest, HigherMayBeBetter) {
  CheckpointRotation kept = rotation(1, false);
  const double metrics[] = {10, 30, 20, std::numeric_limits<double>::quiet_NaN(), 30};
  for (int64_t step = 0; step < 5; ++step) kept.save(step, example_checkpoint(step), metrics[step]);
  kept.save(5, example_checkpoint(5));
  EXPECT_EQ(kept.best_step(), 1) << "NaN and an equal metric are not better";
  EXPECT_EQ(step_in(kept.best_path()), 1);
  EXPECT_THAT(kept.steps(), ElementsAre(1, 4, 5)) << "the best, the last with a metric, the last";
  EXPECT_FALSE(load_training_values(kept.last_path()).contains("metric"));
}

TEST_F(CheckpointRotationTest, AnOldBestGoesWhenABetterOneComes) {
  CheckpointRotation kept = rotation(1);
  const double metrics[] = {3, 4, 2};
  for (int64_t step = 1; step <= 3; ++step)
    kept.save(step, example_checkpoint(step), metrics[step - 1]);
  EXPECT_THAT(kept.steps(), ElementsAre(3));
  EXPECT_EQ(step_in(kept.best_path()), 3);
}

TEST_F(CheckpointRotationTest, KeepsSeveralOfTheBest) {
  const auto rotate = [&](bool lower) {
    return CheckpointRotation({.folder = folder_.file(lower ? "low" : "high"),
                               .keep = 1,
                               .keep_best = 3,
                               .lower_is_better = lower});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool lower : {true, false}) {
    int64_t step = 0;
    for (const double metric : {5.0, 2.0, nan, 2.0, 9.0, 2.0, 7.0, 3.0}) {
      ++step;
      rotate(lower).save(step, example_checkpoint(step), lower ? metric : -metric);
    }
    const CheckpointRotation kept = rotate(lower);
    EXPECT_THAT(kept.steps(), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(kept.best(3), ElementsAre(2, 4, 6));
    EXPECT_THAT(kept.best(2), ElementsAre(2, 4)) << "of equal ones the earlier";
    EXPECT_THAT(kept.best(99), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(kept.newest(2), ElementsAre(6, 8));
    EXPECT_EQ(step_in(kept.best_path()), 2);
    // The same without the object, as other programs see the folder.
    const std::string folder = folder_.file(lower ? "low" : "high");
    EXPECT_THAT(best_steps(saved_steps(folder), 1), ElementsAre(2));
    EXPECT_THAT(best_steps(saved_steps(folder), 4), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(newest_steps(saved_steps(folder), 1), ElementsAre(8));
  }
}

// An interrupted run saves what was not looked at; an average of the last ones must not see it.
TEST_F(CheckpointRotationTest, FilesWithoutAMetricTakeNoPlace) {
  for (int64_t step = 1; step <= 6; ++step) {
    CheckpointRotation kept = rotation(2);
    if (step % 2 == 0)
      kept.save(step, example_checkpoint(step));
    else
      kept.save(step, example_checkpoint(step), 1.0 / static_cast<double>(step));
  }
  const CheckpointRotation kept = rotation(2);
  EXPECT_THAT(kept.steps(), ElementsAre(3, 5, 6));
  EXPECT_THAT(kept.newest(2), ElementsAre(3, 5));
  EXPECT_EQ(step_in(kept.last_path()), 6);
  EXPECT_EQ(step_in(kept.best_path()), 5);
  // A step that is saved again without its metric has none any more.
  rotation(2).save(5, example_checkpoint(5));
  EXPECT_THAT(rotation(2).newest(2), ElementsAre(3));
}

TEST_F(CheckpointRotationTest, NamesADamagedFile) {
  rotation(2).save(1, example_checkpoint(1), 1.0);
  rotation(2).save(2, example_checkpoint(2), 0.5);
  fs::remove(folder_.file("run/step_1.h5"));
  folder_.write("run/step_1.h5", "damaged");
  EXPECT_THAT(test::error_of([&] { rotation(2); }), HasSubstr("step_1.h5 is not a checkpoint"));
  EXPECT_THAT(test::error_of([&] { saved_steps(folder_.file("nowhere")); }),
              HasSubstr("checkpoints: cannot read the folder"));
}

TEST_F(CheckpointRotationTest, GoesOnAfterARestart) {
  for (int64_t step = 1; step <= 4; ++step)
    rotation(2).save(step, example_checkpoint(step), 0.5 + static_cast<double>(step));
  EXPECT_EQ(rotation(2).best_step(), 1);
  EXPECT_THAT(rotation(2).steps(), ElementsAre(1, 3, 4));
  CheckpointRotation kept = rotation(2);
  kept.save(2, example_checkpoint(2), 9.0);  // gone back to an earlier step
  EXPECT_THAT(kept.steps(), ElementsAre(1, 2, 3, 4)) << "the one just saved stays";
  EXPECT_EQ(step_in(kept.last_path()), 2);
  EXPECT_EQ(step_in(rotation(2).last_path()), 2) << "a restart does not take step 4 for the last";
  kept.save(5, example_checkpoint(5), 1.0);
  EXPECT_THAT(kept.steps(), ElementsAre(4, 5));
  EXPECT_EQ(step_in(kept.best_path()), 5);
}

TEST_F(CheckpointRotationTest, RepairsWhatAKillLeftBetweenTwoMoves) {
  CheckpointRotation kept = rotation(3);
  EXPECT_FALSE(kept.best_step().has_value());
  kept.save(1, example_checkpoint(1), 5.0);
  Checkpoint next = example_checkpoint(2);
  next.training["metric"] = 4.0;
  save_checkpoint(kept.path_of(2), next);  // and no other name yet
  EXPECT_EQ(rotation(3).best_step(), 2);
  EXPECT_EQ(step_in(kept.best_path()), 2);
  EXPECT_EQ(step_in(kept.last_path()), 2);
  fs::remove(kept.last_path());
  rotation(3);
  EXPECT_EQ(step_in(kept.last_path()), 2);
  // Which metric is better is told by the file, whatever the one who finishes the save thinks.
  next = example_checkpoint(3);
  next.training["metric"] = 7.0;
  next.training["lower_is_better"] = int64_t{0};
  save_checkpoint(kept.path_of(3), next);
  EXPECT_EQ(rotation(3, true).best_step(), 3);
}

TEST_F(CheckpointRotationTest, LeavesOtherFilesAlone) {
  CheckpointRotation kept = rotation(1);
  const std::vector<std::string> others = {"step_01.h5",
                                           "step_.h5",
                                           "step_-1.h5",
                                           "step_1.h5x",
                                           "notes.txt",
                                           "my_step_1.h5",
                                           "step_99999999999999999999.h5"};
  for (const std::string& name : others) folder_.write("run/" + name, "mine");
  fs::create_directory(folder_.file("run/step_7.h5"));
  for (int64_t step = 1; step <= 3; ++step) kept.save(step, example_checkpoint(step));
  EXPECT_THAT(kept.steps(), ElementsAre(3));
  for (const std::string& name : others)
    EXPECT_EQ(test::read_file(folder_.file("run/" + name)), "mine");
  EXPECT_TRUE(fs::is_directory(folder_.file("run/step_7.h5")));
}

TEST_F(CheckpointRotationTest, RefusesBadFoldersAndNumbers) {
  EXPECT_EQ(test::error_of([&] { rotation(0); }),
            "checkpoints: at least one must be kept, got 0 and 1 of the best");
  folder_.write("run", "a file");
  EXPECT_THAT(test::error_of([&] { rotation(1); }), HasSubstr("cannot make the folder"));
  fs::remove(folder_.file("run"));
  CheckpointRotation kept = rotation(1);
  EXPECT_EQ(test::error_of([&] { kept.save(-1, Checkpoint()); }),
            "checkpoints: a step must not be negative, got -1");
  kept.save(3, example_checkpoint(3), 1.0);
  folder_.write("run/best.h5", "damaged");
  EXPECT_THAT(test::error_of([&] { rotation(1); }), HasSubstr("is not a checkpoint"));
}

TEST_F(CheckpointRotationTest, AKillLeavesLoadableFiles) {
  const auto begin = std::chrono::steady_clock::now();
  rotation(2).save(0, example_checkpoint(0), 0.5);
  const std::chrono::duration<double> one_save = std::chrono::steady_clock::now() - begin;
  std::mt19937 random(2);
  std::uniform_real_distribution<double> saves(0, 6);
  for (int kill_number = 0; kill_number < 20; ++kill_number) {
    const pid_t child = fork();
    if (child == 0) {
      CheckpointRotation kept = rotation(2);
      for (int64_t step = kept.steps().back() + 1;; ++step)
        kept.save(step, example_checkpoint(step), step % 7 == 3 ? -static_cast<double>(step) : 1.0);
    }
    std::this_thread::sleep_for(one_save * saves(random));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const CheckpointRotation kept = rotation(2);
    for (const int64_t step : kept.steps()) EXPECT_EQ(step_in(kept.path_of(step)), step);
    EXPECT_EQ(step_in(kept.last_path()), kept.steps().back());
    EXPECT_EQ(step_in(kept.best_path()), kept.best_step());
    const int64_t newest = kept.steps().back();
    const int64_t best = newest < 3 ? 0 : newest - (newest + 4) % 7;
    EXPECT_EQ(kept.best_step(), best) << "newest " << newest;
  }
  CheckpointRotation kept = rotation(2);
  const int64_t newest = kept.steps().back();
  EXPECT_GT(newest, 0) << "the children have saved nothing";
  kept.save(newest + 1, example_checkpoint(newest + 1));
  EXPECT_LE(kept.steps().size(), 4U);  // this one, two with a metric, and the best
}

}  // namespace
}  // namespace gs
