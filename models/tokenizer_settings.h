#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/text/tokenizer.h"
#include "framework/train/options.h"

namespace gs {

// The merges in a file of subword-nmt's learn-bpe, plain or gzip.
BytePairs load_byte_pairs(const std::string& path);

// How the text of a translation model becomes tokens.
struct TokenizerSettings {
  std::string unit = "word";
  int64_t minimum_count = 1;
  int64_t maximum_vocabulary = 0;
  std::string codes;  // the file of merges; empty: they are learned
  int64_t merges = 10000;
  int64_t subword_size = 8000;
  std::string subword_model = "unigram", subword_normalizer = "identity";

  // Binds every field to an option of the present group.
  void bind(Options& options);

  // Tokenizers of the source and target lines; `joint`: the same one, of all lines.
  std::pair<Tokenizer, Tokenizer> tokenizers(const std::vector<std::string>& source,
                                             const std::vector<std::string>& target,
                                             bool joint) const;

 private:
  void check_together() const;
  Tokenizer tokenizer(const std::vector<std::string>& lines) const;
};

}  // namespace gs
