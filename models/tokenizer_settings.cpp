#include "models/tokenizer_settings.h"

#include "datasets/input_file.h"
#include "framework/core/error.h"
#include "framework/core/profiler.h"
#include "framework/text/byte_pair_learning.h"

namespace gs {

BytePairs load_byte_pairs(const std::string& path) {
  InputFile file(path);
  std::string codes;
  char buffer[1 << 16];
  while (const size_t size = file.read(buffer, sizeof buffer)) codes.append(buffer, size);
  return BytePairs::parse(codes, path);
}

void TokenizerSettings::bind(Options& options) {
  options.bind("unit", unit, "what a token is",
               one_of({"word", "character", "byte-pair", "sentencepiece"}));
  options.bind("codes", codes,
               "merges of byte pairs, a file of subword-nmt learn-bpe; none: they are learned");
  options.bind("merges", merges, "most merges of byte pairs that are learned", at_least(1));
  options.bind("subword-size", subword_size,
               "tokens of a sentencepiece vocabulary, 260 for controls and bytes included",
               between(261, 1'000'000));
  options.bind("subword-model", subword_model, "of sentencepiece", one_of({"unigram", "bpe"}));
  options.bind("subword-normalizer", subword_normalizer,
               "of sentencepiece; identity gives back every character",
               one_of({"identity", "nmt_nfkc"}));
  options.bind("minimum-count", minimum_count, "rarer tokens become <unk>", at_least(1));
  options.bind("maximum-vocabulary", maximum_vocabulary,
               "most tokens of a vocabulary; 0 is no limit", at_least(0));
}

void TokenizerSettings::check_together() const {
  check(unit == "byte-pair" || codes.empty(),
        "--codes: is of no use with --unit {}, got {}; add --unit byte-pair", unit, codes);
  const TokenizerSettings defaults;
  check((unit == "byte-pair" && codes.empty()) || merges == defaults.merges,
        "--merges: is of no use with --codes, nor with --unit {}, got {}; leave it out", unit,
        merges);
  if (unit == "sentencepiece") {
    check(minimum_count == defaults.minimum_count &&
              maximum_vocabulary == defaults.maximum_vocabulary,
          "--minimum-count and --maximum-vocabulary: are of no use with --unit sentencepiece, got "
          "{} and {}; use --subword-size",
          minimum_count, maximum_vocabulary);
  } else {
    check(subword_size == defaults.subword_size && subword_model == defaults.subword_model &&
              subword_normalizer == defaults.subword_normalizer,
          "--subword-size, --subword-model and --subword-normalizer: are of no use with --unit {}; "
          "add --unit sentencepiece",
          unit);
  }
}

Tokenizer TokenizerSettings::tokenizer(const std::vector<std::string>& lines) const {
  const VocabularyConfig config{.minimum_count = minimum_count, .maximum_size = maximum_vocabulary};
  if (unit == "byte-pair") {
    BytePairs pairs = codes.empty() ? learn_byte_pairs(lines, merges) : load_byte_pairs(codes);
    return BytePairVocabulary(std::move(pairs), lines, config);
  }
  if (unit == "sentencepiece") {
    using Config = SentencePieceConfig;
    return SentencePiece::train(
        lines,
        {.vocabulary_size = subword_size,
         .model = subword_model == "unigram" ? Config::Model::kUnigram : Config::Model::kBytePairs,
         .normalizer = subword_normalizer == "identity" ? Config::Normalizer::kIdentity
                                                        : Config::Normalizer::kNfkc});
  }
  TokenCounts counts(unit == "word" ? TokenUnit::kWord : TokenUnit::kCharacter);
  counts.add_lines(lines);
  return Vocabulary(counts, config);
}

std::pair<Tokenizer, Tokenizer> TokenizerSettings::tokenizers(
    const std::vector<std::string>& source, const std::vector<std::string>& target,
    bool joint) const {
  const OperationTimer timer("vocabulary", Phase::kOther);
  check_together();
  if (!joint) return {tokenizer(source), tokenizer(target)};
  std::vector<std::string> lines = source;
  lines.insert(lines.end(), target.begin(), target.end());
  const Tokenizer both = tokenizer(lines);
  return {both, both};
}

}  // namespace gs
