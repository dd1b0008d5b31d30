#include "models/summary_of_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/io/atomic_file.h"

namespace gs {
namespace {

using Json = nlohmann::ordered_json;

Json read_summary(const std::string& path) {
  std::ifstream stream(path);
  Json json = Json::parse(stream, nullptr, false);
  check(json.is_object(), "summary: {} cannot be read, or is no summary of a run", path);
  return json;
}

Json statistics_of(const std::vector<Json>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const Json& number : numbers) sum += number.get<double>();
  const double mean = sum / count;
  for (const Json& number : numbers) squares += std::pow(number.get<double>() - mean, 2);
  Json deviation;  // null
  if (numbers.size() > 1) deviation = std::sqrt(squares / (count - 1));
  return {{"mean", mean}, {"standard_deviation", deviation}, {"values", numbers}};
}

// Null where the values are neither all numbers nor all objects.
Json combined(const std::vector<Json>& values) {
  const auto all = [&](auto is) { return std::all_of(values.begin(), values.end(), is); };
  if (all([](const Json& value) { return value.is_number(); })) return statistics_of(values);
  if (!all([](const Json& value) { return value.is_object(); })) return nullptr;
  Json result = Json::object();
  for (const auto& [name, first] : values.front().items()) {
    std::vector<Json> parts;
    for (const Json& value : values)
      if (value.contains(name)) parts.push_back(value[name]);
    if (parts.size() < values.size()) continue;
    Json part = combined(parts);
    if (!part.is_null()) result[name] = std::move(part);
  }
  return result;
}

void print_scores(const Json& summary) {
  for (const char* score : {"exact_match", "bleu", "chrf"}) {
    if (!summary.contains(score)) continue;
    for (const auto& [test, figures] : summary[score].items()) {
      std::string values;
      for (const Json& value : figures["values"])
        values += fmt::format("{}{:.4g}", values.empty() ? "" : ", ", value.get<double>());
      const Json& deviation = figures["standard_deviation"];
      fmt::print("{:<12} {:<20} {:.4g}{} ({})\n", score, test, figures["mean"].get<double>(),
                 deviation.is_null() ? "" : fmt::format(" +- {:.2g}", deviation.get<double>()),
                 values);
    }
  }
}

}  // namespace

std::optional<uint64_t> first_seed_in(const std::string& folder) {
  std::optional<uint64_t> first;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string(), prefix = "seed_";
    uint64_t seed = 0;
    if (!name.starts_with(prefix)) continue;
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), seed);
    std::error_code ignored;
    if (name != prefix + std::to_string(seed) ||
        !std::filesystem::exists(entry->path() / "last.h5", ignored)) {
      continue;
    }
    first = std::min(seed, first.value_or(seed));
  }
  return first;
}

void summarise_runs(const std::vector<std::string>& runs, const std::string& folder) {
  check(!runs.empty(), "summary: no run is given");
  std::vector<Json> summaries;
  for (const std::string& run : runs) summaries.push_back(read_summary(run + "/summary.json"));
  Json summary{{"runs", runs}};
  summary.update(combined(summaries));
  fmt::print("\nMean and standard deviation of {} runs:\n", runs.size());
  print_scores(summary);
  write_file_atomically(folder + "/summary.json", summary.dump(2) + "\n");
}

}  // namespace gs
