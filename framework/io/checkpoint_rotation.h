#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/checkpoint.h"

namespace gs {

// A file step_<step>.h5 of a folder; `metric` says how good its model was found, where it was
// looked at.
struct SavedStep {
  int64_t step = 0;
  std::optional<double> metric = {};
  bool lower_is_better = true;  // as the file itself tells
};
// All of a folder by ascending step. An unreadable one is an Error.
std::vector<SavedStep> saved_steps(const std::string& folder);
// Of those with a metric the `count` newest, and the `count` best of which the earlier of equal
// ones go first and NaN never goes; ascending. There may be fewer.
std::vector<int64_t> newest_steps(const std::vector<SavedStep>& saved, int64_t count);
std::vector<int64_t> best_steps(std::vector<SavedStep> saved, int64_t count);
std::string path_of_step(const std::string& folder, int64_t step);

// A folder of checkpoints that does not grow: step_<n>.h5 of the highest steps and of the best
// metrics, and two more names, last.h5 (the latest save) and best.h5, which are hard links
// (copies where the file system has none), each replaced in one go. The best are never removed,
// neither is the one just saved; files of other names are left alone, and files without a metric
// take no place from those that have one. A kill between any two moves leaves every name loadable;
// the next start finishes what was left undone.
class CheckpointRotation {
 public:
  struct Config {
    std::string folder;     // made if missing
    int64_t keep = 5;       // besides the best
    int64_t keep_best = 1;  // of which best.h5 is the first
    bool lower_is_better = true;
  };

  // Goes on with what the folder holds. An unreadable file is an Error.
  explicit CheckpointRotation(Config config);

  // Saves step_<step>.h5 with the training values "step" and, if given, "metric"; NaN is never the
  // best, and of equal metrics the earlier one stays the best.
  void save(int64_t step, Checkpoint checkpoint, std::optional<double> metric = {});

  std::string path_of(int64_t step) const { return path_of_step(config_.folder, step); }
  // The steps whose files are in the folder, ascending.
  std::vector<int64_t> steps() const;
  // As newest_steps and best_steps say.
  std::vector<int64_t> newest(int64_t count) const { return newest_steps(saved(), count); }
  std::vector<int64_t> best(int64_t count) const { return best_steps(saved(), count); }
  std::optional<int64_t> best_step() const { return best_step_; }
  std::string last_path() const { return config_.folder + "/last.h5"; }
  std::string best_path() const { return config_.folder + "/best.h5"; }

 private:
  std::vector<SavedStep> saved() const;
  void finish_interrupted_save(const std::vector<SavedStep>& saved);
  void take_if_best(const SavedStep& saved);
  void remove_surplus(int64_t just_saved) const;

  Config config_;
  std::map<int64_t, double> metrics_;  // of the steps that have one
  std::optional<int64_t> best_step_;
  double best_metric_ = 0;
};

}  // namespace gs
