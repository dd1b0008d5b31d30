#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/io/checkpoint.h"
#include "framework/text/tokenizer.h"
#include "models/search.h"
#include "models/transformer.h"

namespace gs {

// One translation of a line.
struct Translation {
  std::string text;
  double log_probability = 0;
  double score = 0;
};

// A Transformer with the tokenizers of both languages: all that it takes to translate text.
class Translator {
 public:
  // The tokenizers' sizes take the place of those in `config`.
  Translator(TransformerConfig config, Tokenizer source, Tokenizer target);
  // From a checkpoint alone, to compute on `device`, whatever device it was made on. What the
  // checkpoint lacks or has too much is listed in one error.
  static std::unique_ptr<Translator> load(const std::string& path, Device device = Device::cpu());
  static std::unique_ptr<Translator> from_checkpoint(const Checkpoint& checkpoint,
                                                     const std::string& path,
                                                     Device device = Device::cpu());

  Transformer& transformer() { return *transformer_; }
  const Transformer& transformer() const { return *transformer_; }
  const Tokenizer& source_tokenizer() const { return source_; }
  const Tokenizer& target_tokenizer() const { return target_; }

  // The most tokens that a line may have: the end mark takes one place more.
  int64_t longest_line() const { return transformer_->config.maximum_length - 1; }
  // The best translations of each line, best first, in the order of the lines. A line without words
  // gives empty translations, as many as are wanted. Lines longer than the model's limit are
  // refused, by number.
  std::vector<std::vector<Translation>> translate(const std::vector<std::string>& lines,
                                                  const SearchConfig& config) const;

  // How the words of one translation attend to those of its source: the last decoder layer's mean
  // over heads, with the marks </s> at both ends.
  struct Alignment {
    std::vector<std::string> source, target;
    std::vector<std::vector<double>> weights;  // a row for each target word
  };
  Alignment attention(const std::string& source_line, const std::string& target_line) const;

  // Writes parameters, sizes and tokenizers into a checkpoint.
  void store(Checkpoint& checkpoint) const;

 private:
  Tokenizer source_, target_;
  std::unique_ptr<Transformer> transformer_;
};

}  // namespace gs
