#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gs {

// Sentence pairs of one purpose. `name` is "train", "valid", one of the toy corpus's test splits,
// "test" for pairs that were held out, or that of a test file.
struct TranslationSplit {
  std::string name;
  std::vector<std::string> source, target;
  std::vector<int64_t> lines = {};  // of each pair in its files, from 1; empty where there are none
  bool whole_file = false;          // a test of its own files, of which no more is to be left out

  // "line 7" of the pair's files, else "pair 7".
  std::string place(int64_t pair) const;
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

// Text files of the user: two files each, or one TSV with an empty target name.
struct FileDataConfig {
  std::string train_source, train_target;
  std::string valid_source, valid_target;             // empty: held out of the training pairs
  std::vector<std::string> test_source, test_target;  // as many; no target: all are TSV
  int64_t valid_pairs = 500;                          // held out, at least (held_out.h)
  int64_t held_out_test = 0;                          // likewise, as a further test
  uint64_t split_seed = 1;                            // chooses what is held out
  int64_t maximum_words = 255;                        // of training and validation sentences
};
// Every test has the name of its source file without folder and the last extension (".gz" beside),
// made unique by a number; the notes tell what was read, left out and held out, and how many
// sentences of the other files are training sentences as well. Tests have no limit of words.
TranslationData file_translation_data(const FileDataConfig& config);

}  // namespace gs
