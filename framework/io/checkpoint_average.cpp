#include "framework/io/checkpoint_average.h"

#include <cstring>
#include <filesystem>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

using Texts = std::map<std::string, std::string>;
using Sums = std::map<std::string, std::vector<double>>;

// What makes the model, without the options of the run; as far as both have it, since a run may
// have gone on with a newer version, whose files tell more.
Texts model_config(const Texts& config, const Texts& other) {
  Texts model;
  for (const auto& [name, text] : config)
    if (!name.starts_with(kRunOptions) && other.contains(name)) model.emplace(name, text);
  return model;
}

// "width is 32, not 16", for each name whose text is another one.
void note_texts(std::vector<std::string>& notes, const std::string& kind, const Texts& expected,
                const Texts& found) {
  const auto shown = [](const Texts& texts, const std::string& name) {
    const auto place = texts.find(name);
    return place == texts.end() ? "missing" : "'" + place->second + "'";
  };
  Texts all = expected;
  all.insert(found.begin(), found.end());
  for (const auto& [name, text] : all) {
    const std::string before = shown(expected, name), now = shown(found, name);
    if (before != now) notes.push_back(fmt::format("{} {} is {}, not {}", kind, name, now, before));
  }
}

// Sameness alone: the bytes are not for reading.
void note_tokenizers(std::vector<std::string>& notes, const Texts& expected, const Texts& found) {
  Texts names = expected;
  names.insert(found.begin(), found.end());
  for (const auto& [name, bytes] : names) {
    const auto a = expected.find(name), b = found.find(name);
    const bool same = a != expected.end() && b != found.end() && a->second == b->second;
    if (!same) notes.push_back(fmt::format("the tokenizer's {} is another one", name));
  }
}

bool same_bytes(const Array& a, const Array& b) {
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.bytes())) == 0;
}

// All in which a model differs from the first one; empty where they can be averaged.
std::string differences(const Checkpoint& first, const Checkpoint& other) {
  std::vector<std::string> notes;
  ExpectedNames expected;
  for (const auto& [name, array] : first.parameters)
    expected[name] = {array.shape(), array.dtype()};
  const NameComparison names = compare_names(expected, other.parameters);
  if (!names.complete()) notes.push_back(names.text());
  note_texts(notes, "tie", first.ties, other.ties);
  note_texts(notes, "config", model_config(first.config, other.config),
             model_config(other.config, first.config));
  note_tokenizers(notes, first.tokenizer, other.tokenizer);
  for (const auto& [name, array] : first.parameters) {
    const auto found = other.parameters.find(name);
    if (found == other.parameters.end() || is_floating(array.dtype())) continue;
    if (found->second.bytes() == array.bytes() && !same_bytes(array, found->second))
      notes.push_back(fmt::format("{}, which is {}, has other values", name, array.dtype()));
  }
  std::string text;
  for (const std::string& note : notes) text += (text.empty() ? "" : ", ") + note;
  return text;
}

void add(Sums& sums, const Checkpoint& checkpoint) {
  for (const auto& [name, array] : checkpoint.parameters) {
    if (!is_floating(array.dtype())) continue;
    const std::vector<double> values = array.values<double>();
    const auto [place, is_first] = sums.try_emplace(name, values);
    if (is_first) continue;  // not added to zeros, for the sake of -0
    std::vector<double>& sum = place->second;
    for (size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
  }
}

void check_paths(const std::vector<std::string>& paths) {
  check(!paths.empty(), "average: no checkpoint is given; name one or more");
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      std::error_code ignored;  // a missing file is told when it is read
      check(paths[i] != paths[k] && !std::filesystem::equivalent(paths[i], paths[k], ignored),
            "average: {} and {} are the same file; name it once", paths[k], paths[i]);
    }
  }
}

}  // namespace

Checkpoint average_checkpoints(const std::vector<std::string>& paths) {
  const OperationTimer timer("average_checkpoints", Phase::kOther);
  check_paths(paths);
  Checkpoint first, last;
  Sums sums;
  std::string refused, names;
  for (const std::string& path : paths) {
    last = load_checkpoint(path);
    last.optimizer.clear();
    if (path == paths.front()) first = last;
    const std::string difference = differences(first, last);
    if (!difference.empty())
      refused += fmt::format("{}{} ({})", refused.empty() ? "" : "; ", path, difference);
    if (refused.empty()) add(sums, last);
    names += (names.empty() ? "" : "\n") + std::filesystem::path(path).filename().string();
  }
  check(refused.empty(), "average: other models than in {}: {}; average files of one run",
        paths.front(), refused);

  const auto count = static_cast<double>(paths.size());
  for (auto& [name, sum] : sums) {
    for (double& value : sum) value /= count;
    Array& array = last.parameters.at(name);
    array = Array::of<double>(array.shape(), sum).to(array.dtype());
  }
  Checkpoint average = std::move(last);
  const auto step = average.training.find("step");
  std::map<std::string, TrainingValue> training{{"averaged_files", names}};
  if (step != average.training.end()) training.insert(*step);
  average.training = std::move(training);
  return average;
}

}  // namespace gs
