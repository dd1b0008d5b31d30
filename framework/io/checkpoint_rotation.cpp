#include "framework/io/checkpoint_rotation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
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

std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::optional<int64_t> step = step_of(entry->path().filename().string());
    std::error_code ignored;
    if (step && entry->is_regular_file(ignored)) steps.push_back(*step);
  }
  check(!error, "checkpoints: cannot read the folder {}, {}", folder, error.message());
  std::sort(steps.begin(), steps.end());
  return steps;
}

// The steps of the first `count`, ascending.
std::vector<int64_t> first_steps(const std::vector<SavedStep>& saved, int64_t count) {
  std::vector<int64_t> steps;
  for (const SavedStep& one : saved)
    if (static_cast<int64_t>(steps.size()) < count) steps.push_back(one.step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool contains(const std::vector<int64_t>& steps, int64_t step) {
  return std::find(steps.begin(), steps.end(), step) != steps.end();
}

}  // namespace

std::string path_of_step(const std::string& folder, int64_t step) {
  return folder + "/" + name_of_step(step);
}

std::vector<SavedStep> saved_steps(const std::string& folder) {
  std::vector<SavedStep> saved;
  for (const int64_t step : steps_in(folder)) {
    const auto values = load_training_values(path_of_step(folder, step));
    saved.push_back({.step = step,
                     .metric = value_of<double>(values, "metric"),
                     .lower_is_better = value_of<int64_t>(values, "lower_is_better") != 0});
  }
  return saved;
}

std::vector<int64_t> newest_steps(const std::vector<SavedStep>& saved, int64_t count) {
  std::vector<SavedStep> rated;
  std::copy_if(saved.rbegin(), saved.rend(), std::back_inserter(rated),
               [](const SavedStep& one) { return one.metric.has_value(); });
  return first_steps(rated, count);
}

std::vector<int64_t> best_steps(std::vector<SavedStep> saved, int64_t count) {
  std::erase_if(saved, [](const SavedStep& one) { return !one.metric || std::isnan(*one.metric); });
  std::stable_sort(saved.begin(), saved.end(), [](const SavedStep& a, const SavedStep& b) {
    return a.lower_is_better ? *a.metric < *b.metric : *a.metric > *b.metric;
  });
  return first_steps(saved, count);
}

CheckpointRotation::CheckpointRotation(Config config) : config_(std::move(config)) {
  check(config_.keep >= 1 && config_.keep_best >= 1,
        "checkpoints: at least one must be kept, got {} and {} of the best", config_.keep,
        config_.keep_best);
  check(!config_.folder.empty(), "checkpoints: the folder has no name");
  std::error_code error;
  fs::create_directories(config_.folder, error);
  check(fs::is_directory(config_.folder), "checkpoints: cannot make the folder {}, {}",
        config_.folder, error ? error.message() : "another file has that name");
  const std::vector<SavedStep> saved = saved_steps(config_.folder);
  for (const SavedStep& one : saved)
    if (one.metric) metrics_[one.step] = *one.metric;
  if (exists(best_path())) {
    const auto values = load_training_values(best_path());
    const std::optional<int64_t> step = value_of<int64_t>(values, "step");
    const std::optional<double> metric = value_of<double>(values, "metric");
    check(step && metric, "checkpoints: {} does not hold its step and metric; rename it",
          best_path());
    best_step_ = *step;
    best_metric_ = *metric;
  }
  finish_interrupted_save(saved);
}

// A kill may have come between the file that was written last and its other names. The time alone
// does not decide: copying a folder gives its files times in any order.
void CheckpointRotation::finish_interrupted_save(const std::vector<SavedStep>& saved) {
  const SavedStep* latest = nullptr;
  for (const SavedStep& one : saved) {
    if (latest == nullptr || time_of(path_of(one.step)) >= time_of(path_of(latest->step)))
      latest = &one;
  }
  if (latest == nullptr) return;
  const std::string path = path_of(latest->step);
  if (latest->step != best_step_) take_if_best(*latest);
  const bool behind =
      !exists(last_path()) ||
      (time_of(path) > time_of(last_path()) &&
       value_of<int64_t>(load_training_values(last_path()), "step").value_or(-1) < latest->step);
  if (behind) link_file_atomically(path, last_path());
}

std::vector<int64_t> CheckpointRotation::steps() const { return steps_in(config_.folder); }

std::vector<SavedStep> CheckpointRotation::saved() const {
  std::vector<SavedStep> saved;
  for (const int64_t step : steps()) {
    SavedStep& one = saved.emplace_back();
    one = {.step = step, .lower_is_better = config_.lower_is_better};
    const auto metric = metrics_.find(step);
    if (metric != metrics_.end()) one.metric = metric->second;
  }
  return saved;
}

void CheckpointRotation::save(int64_t step, Checkpoint checkpoint, std::optional<double> metric) {
  check(step >= 0, "checkpoints: a step must not be negative, got {}", step);
  checkpoint.training["step"] = step;
  checkpoint.training.erase("metric");
  metrics_.erase(step);
  if (metric) {
    checkpoint.training["metric"] = *metric;
    checkpoint.training["lower_is_better"] = static_cast<int64_t>(config_.lower_is_better);
    metrics_[step] = *metric;
  }
  save_checkpoint(path_of(step), checkpoint);
  take_if_best({.step = step, .metric = metric, .lower_is_better = config_.lower_is_better});
  link_file_atomically(path_of(step), last_path());
  remove_surplus(step);
}

void CheckpointRotation::take_if_best(const SavedStep& saved) {
  if (!saved.metric || std::isnan(*saved.metric)) return;
  const bool better = !best_step_ || (saved.lower_is_better ? *saved.metric < best_metric_
                                                            : *saved.metric > best_metric_);
  if (!better) return;
  link_file_atomically(path_of(saved.step), best_path());
  best_step_ = saved.step;
  best_metric_ = *saved.metric;
}

void CheckpointRotation::remove_surplus(int64_t just_saved) const {
  std::vector<int64_t> all = steps();
  const std::vector<int64_t> newest_rated = newest(config_.keep), rated = best(config_.keep_best);
  const auto kept = std::min(static_cast<int64_t>(all.size()), config_.keep);
  all.resize(all.size() - static_cast<size_t>(kept));
  for (const int64_t step : all) {
    if (step == best_step_ || step == just_saved) continue;
    if (contains(newest_rated, step) || contains(rated, step)) continue;
    std::error_code error;
    fs::remove(path_of(step), error);
    check(!error, "checkpoints: cannot remove {}, {}", path_of(step), error.message());
  }
}

}  // namespace gs
