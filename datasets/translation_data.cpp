#include "datasets/translation_data.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "datasets/held_out.h"
#include "datasets/parallel_corpus.h"
#include "datasets/toy_corpus.h"
#include "framework/core/error.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

TranslationSplit toy_split(const ToyDataConfig& config, const std::string& name, int64_t first,
                           int64_t count) {
  TranslationSplit split{name, {}, {}};
  ToyCorpus corpus(config.seed, config.level, name);
  for (int64_t i = 0; i < first + count; ++i) {
    ToyPair pair = corpus.next();
    if (i < first) continue;
    split.source.push_back(std::move(pair.source));
    split.target.push_back(std::move(pair.target));
  }
  return split;
}

TranslationSplit read_split(const std::string& name, const std::string& source,
                            const std::string& target, int64_t maximum_words,
                            std::vector<std::string>& notes) {
  ParallelCorpusConfig config;
  config.maximum_words = maximum_words;
  ParallelCorpus corpus = target.empty() ? read_parallel_tsv(source, config)
                                         : read_parallel_corpus(source, target, config);
  notes.push_back(corpus.report.summary());
  return {name, std::move(corpus.source), std::move(corpus.target), std::move(corpus.lines)};
}

std::string sizes_of(const TranslationSplit& split) {
  const std::unordered_set<std::string_view> distinct(split.source.begin(), split.source.end());
  return fmt::format("{} pairs of {} sentences", split.source.size(), distinct.size());
}

// Moves what is held out to the validation split and the tests.
void split_off(TranslationData& data, const HeldOutConfig& config) {
  if (config.valid_pairs == 0 && config.test_pairs == 0) return;
  const std::vector<Purpose> purposes = hold_out(data.train.source, config);
  TranslationSplit all = std::exchange(data.train, {"train", {}, {}});
  TranslationSplit valid{"valid", {}, {}}, test{"test", {}, {}};
  for (size_t i = 0; i < purposes.size(); ++i) {
    TranslationSplit& to = purposes[i] == Purpose::kTest         ? test
                           : purposes[i] == Purpose::kValidation ? valid
                                                                 : data.train;
    to.source.push_back(std::move(all.source[i]));
    to.target.push_back(std::move(all.target[i]));
    to.lines.push_back(all.lines[i]);
  }
  std::string held;
  if (config.valid_pairs > 0) held = sizes_of(valid) + " for validation";
  if (config.test_pairs > 0) held += (held.empty() ? "" : ", ") + sizes_of(test) + " for the test";
  data.notes.push_back(
      fmt::format("held out by source sentence: {}; {} are left for training (split seed {})", held,
                  sizes_of(data.train), config.seed));
  if (config.valid_pairs > 0) data.valid = std::move(valid);
  if (config.test_pairs > 0) data.tests.push_back(std::move(test));
}

// The file's name without its folder, ".gz" and the last extension; with a number where it is
// taken.
std::string test_name(const std::string& file, const std::vector<TranslationSplit>& others) {
  std::filesystem::path path = std::filesystem::path(file).filename();
  if (path.extension() == ".gz") path = path.stem();
  const std::string name = replace_invalid_utf8(path.stem().string());
  const auto taken = [&](const std::string& text) {
    return text == "train" || text == "valid" ||
           std::any_of(others.begin(), others.end(),
                       [&](const TranslationSplit& other) { return other.name == text; });
  };
  std::string unique = name;
  for (int number = 2; taken(unique); ++number) unique = fmt::format("{}-{}", name, number);
  return unique;
}

void note_training_sentences(const std::unordered_set<std::string_view>& train,
                             const TranslationSplit& split, std::vector<std::string>& notes) {
  const auto known = std::count_if(split.source.begin(), split.source.end(),
                                   [&](const std::string& line) { return train.contains(line); });
  if (known == 0) return;
  notes.push_back(fmt::format("{}: {} of {} source sentences are training sentences too",
                              split.name, known, split.source.size()));
}

void check_files(const FileDataConfig& config) {
  check(!config.valid_source.empty() || config.valid_target.empty(),
        "data: the validation target {} has no source; name both", config.valid_target);
  const size_t sources = config.test_source.size(), targets = config.test_target.size();
  check(sources > 0 || targets == 0, "data: the test target {} has no source; name both",
        fmt::join(config.test_target, ","));
  check(targets == 0 || sources == targets,
        "data: numbers of test files differ, got {} sources and {} targets; name one target for "
        "each source, or none where the sources are TSV files",
        sources, targets);
}

}  // namespace

TranslationData toy_translation_data(const ToyDataConfig& config) {
  TranslationData data;
  data.train = toy_split(config, "train", 0, config.train_pairs);
  data.tests.push_back(toy_split(config, "iid", 0, config.test_pairs));
  // Validation must not be the test: it takes the pairs that follow.
  data.valid = toy_split(config, "iid", config.test_pairs, config.valid_pairs);
  data.valid.name = "valid";
  for (const char* name : {"pair", "role", "nested", "long"}) {
    if (ToyCorpus::has(config.level, name))
      data.tests.push_back(toy_split(config, name, 0, config.test_pairs));
  }
  return data;
}

TranslationData file_translation_data(const FileDataConfig& config) {
  check_files(config);
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  TranslationData data;
  data.train = read_split("train", config.train_source, config.train_target, config.maximum_words,
                          data.notes);
  const bool has_valid = !config.valid_source.empty();
  if (has_valid) {
    data.valid = read_split("valid", config.valid_source, config.valid_target, config.maximum_words,
                            data.notes);
  }
  split_off(data, {.valid_pairs = has_valid ? 0 : config.valid_pairs,
                   .test_pairs = config.held_out_test,
                   .seed = config.split_seed});
  for (size_t i = 0; i < config.test_source.size(); ++i) {
    const std::string target = config.test_target.empty() ? "" : config.test_target[i];
    data.tests.push_back(read_split(test_name(config.test_source[i], data.tests),
                                    config.test_source[i], target, kNoLimit, data.notes));
    data.tests.back().whole_file = true;
  }
  const std::unordered_set<std::string_view> train(data.train.source.begin(),
                                                   data.train.source.end());
  note_training_sentences(train, data.valid, data.notes);
  for (const TranslationSplit& test : data.tests) note_training_sentences(train, test, data.notes);
  return data;
}

std::string TranslationSplit::place(int64_t pair) const {
  return lines.empty() ? fmt::format("pair {}", pair + 1)
                       : fmt::format("line {}", lines[static_cast<size_t>(pair)]);
}

}  // namespace gs
