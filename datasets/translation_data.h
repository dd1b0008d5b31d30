#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gs {

// Sentence pairs of one purpose; `name` is "valid", or one of the toy corpus's splits.
struct TranslationSplit {
  std::string name;
  std::vector<std::string> source, target;
};

// All text of a training run.
struct TranslationData {
  TranslationSplit train;
  TranslationSplit valid;               // watched during training
  std::vector<TranslationSplit> tests;  // scored at the end
  std::vector<std::string> notes;       // what was left out and why, for the user to read
};

// Generated English-German pairs (toy_corpus.h), `train_pairs` for training; `valid_pairs` held out
// for validation and as many for each test split: iid and pair, and role where wanted.
struct ToyDataConfig {
  uint64_t seed = 1;
  int64_t level = 2;
  int64_t train_pairs = 100000;
  int64_t valid_pairs = 500;
  int64_t test_pairs = 1000;
};
TranslationData toy_translation_data(const ToyDataConfig& config);

// Text files of the user: two files each, or one TSV with an empty target name. `test` may be
// empty.
struct FileDataConfig {
  std::string train_source, train_target;
  std::string valid_source, valid_target;  // empty: the last `valid_pairs` training pairs
  std::string test_source, test_target;
  int64_t valid_pairs = 500;
  int64_t maximum_words = 256;
};
TranslationData file_translation_data(const FileDataConfig& config);

}  // namespace gs
