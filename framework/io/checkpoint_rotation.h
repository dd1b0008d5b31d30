#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/io/checkpoint.h"

namespace gs {

// A folder of checkpoints that does not grow: step_<n>.h5 of the highest steps and of the best
// metric, and two more names, last.h5 (the latest save) and best.h5, which are hard links
// (copies where the file system has none), each replaced in one go. The best is never removed,
// neither is the one just saved; files of other names are left alone. A kill between any two moves
// leaves every name loadable; the next start finishes what was left undone.
class CheckpointRotation {
 public:
  struct Config {
    std::string folder;  // made if missing
    int64_t keep = 5;    // besides the best
    bool lower_is_better = true;
  };

  // Goes on with what the folder holds. An unreadable best or newest file is an Error.
  explicit CheckpointRotation(Config config);

  // Saves step_<step>.h5 with the training values "step" and, if given, "metric"; NaN is never the
  // best, and of equal metrics the earlier one stays the best.
  void save(int64_t step, Checkpoint checkpoint, std::optional<double> metric = {});

  std::string path_of(int64_t step) const;
  // The steps whose files are in the folder, ascending.
  std::vector<int64_t> steps() const;
  std::optional<int64_t> best_step() const { return best_step_; }
  std::string last_path() const { return config_.folder + "/last.h5"; }
  std::string best_path() const { return config_.folder + "/best.h5"; }

 private:
  void finish_interrupted_save();
  void take_if_best(int64_t step, std::optional<double> metric);
  void remove_surplus(int64_t saved) const;

  Config config_;
  std::optional<int64_t> best_step_;
  double best_metric_ = 0;
};

}  // namespace gs
