#include "framework/io/checkpoint_rotation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "framework/core/error.h"
#include "framework/io/atomic_file.h"

namespace gs {
namespace {

namespace fs = std::filesystem;

std::string name_of_step(int64_t step) { return fmt::format("step_{}.h5", step); }

// The n of "step_<n>.h5"; nothing for any other name.
std::optional<int64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = "step_";
  if (!name.starts_with(prefix)) return {};
  int64_t step = 0;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
  if (step < 0 || name != name_of_step(step)) return {};
  return step;
}

template <typename T>
std::optional<T> value_of(const std::map<std::string, TrainingValue>& values, const char* name) {
  const auto found = values.find(name);
  if (found == values.end() || !std::holds_alternative<T>(found->second)) return {};
  return std::get<T>(found->second);
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

fs::file_time_type time_of(const std::string& path) {
  std::error_code error;
  return fs::last_write_time(path, error);
}

}  // namespace

CheckpointRotation::CheckpointRotation(Config config) : config_(std::move(config)) {
  check(config_.keep >= 1, "checkpoints: at least one must be kept, got {}", config_.keep);
  check(!config_.folder.empty(), "checkpoints: the folder has no name");
  std::error_code error;
  fs::create_directories(config_.folder, error);
  check(fs::is_directory(config_.folder), "checkpoints: cannot make the folder {}, {}",
        config_.folder, error ? error.message() : "another file has that name");
  if (exists(best_path())) {
    const auto values = load_training_values(best_path());
    const std::optional<int64_t> step = value_of<int64_t>(values, "step");
    const std::optional<double> metric = value_of<double>(values, "metric");
    check(step && metric, "checkpoints: {} does not hold its step and metric; rename it",
          best_path());
    best_step_ = *step;
    best_metric_ = *metric;
  }
  finish_interrupted_save();
}

// A kill may have come between the file that was written last and its other names. The time alone
// does not decide: copying a folder gives its files times in any order.
void CheckpointRotation::finish_interrupted_save() {
  std::optional<int64_t> latest;
  for (const int64_t step : steps())
    if (!latest || time_of(path_of(step)) >= time_of(path_of(*latest))) latest = step;
  if (!latest) return;
  const std::string path = path_of(*latest);
  if (latest != best_step_) {
    take_if_best(*latest, value_of<double>(load_training_values(path), "metric"));
  }
  const bool behind =
      !exists(last_path()) ||
      (time_of(path) > time_of(last_path()) &&
       value_of<int64_t>(load_training_values(last_path()), "step").value_or(-1) < *latest);
  if (behind) link_file_atomically(path, last_path());
}

std::string CheckpointRotation::path_of(int64_t step) const {
  return config_.folder + "/" + name_of_step(step);
}

std::vector<int64_t> CheckpointRotation::steps() const {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(config_.folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<int64_t> step = step_of(entry->path().filename().string());
    std::error_code ignored;
    if (step && entry->is_regular_file(ignored)) steps.push_back(*step);
  }
  check(!error, "checkpoints: cannot read the folder {}, {}", config_.folder, error.message());
  std::sort(steps.begin(), steps.end());
  return steps;
}

void CheckpointRotation::save(int64_t step, Checkpoint checkpoint, std::optional<double> metric) {
  check(step >= 0, "checkpoints: a step must not be negative, got {}", step);
  checkpoint.training["step"] = step;
  checkpoint.training.erase("metric");
  if (metric) checkpoint.training["metric"] = *metric;
  save_checkpoint(path_of(step), checkpoint);
  take_if_best(step, metric);
  link_file_atomically(path_of(step), last_path());
  remove_surplus(step);
}

void CheckpointRotation::take_if_best(int64_t step, std::optional<double> metric) {
  if (!metric || std::isnan(*metric)) return;
  const bool better =
      !best_step_ || (config_.lower_is_better ? *metric < best_metric_ : *metric > best_metric_);
  if (!better) return;
  link_file_atomically(path_of(step), best_path());
  best_step_ = step;
  best_metric_ = *metric;
}

void CheckpointRotation::remove_surplus(int64_t saved) const {
  std::vector<int64_t> surplus = steps();
  const auto kept = std::min(static_cast<int64_t>(surplus.size()), config_.keep);
  surplus.resize(surplus.size() - static_cast<size_t>(kept));
  for (const int64_t step : surplus) {
    if (step == best_step_ || step == saved) continue;
    std::error_code error;
    fs::remove(path_of(step), error);
    check(!error, "checkpoints: cannot remove {}, {}", path_of(step), error.message());
  }
}

}  // namespace gs
