#include "framework/text/chrf.h"

#include <algorithm>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/version.h"
#include "framework/text/ngrams.h"
#include "framework/text/unicode.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr double kEpsilon = 1e-16;

void check_config(const ChrfConfig& config) {
  check(config.character_order >= 0 && config.word_order >= 0 &&
            config.character_order + config.word_order >= 1,
        "chrf: orders must be 0 or more, and one of them above 0, got {} of characters and {} of "
        "words",
        config.character_order, config.word_order);
  check(config.beta >= 1, "chrf: beta must be 1 or more, got {}", config.beta);
}

bool is_ascii_punctuation(std::string_view character) {
  constexpr std::string_view kMarks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return character.size() == 1 && kMarks.find(character[0]) != std::string_view::npos;
}

// The n-grams of a line: counts[i] those of the i-th order, characters first. The texts hold what
// the counts refer to.
struct Ngrams {
  std::string characters, words;
  std::vector<NgramCounts> counts;

  Ngrams(std::string_view line, const ChrfConfig& config) {
    const std::string lower = config.lowercase ? lower_case(line) : std::string();
    if (config.lowercase) line = lower;
    const std::vector<std::string_view> parts = split_words(line);
    if (config.whitespace) characters = line;
    for (const std::string_view part : parts) {
      if (!config.whitespace) characters += part;
      append_words(part);
    }
    count(split_characters(characters), config.character_order);
    count(split_words(words), config.word_order);
  }
  Ngrams(const Ngrams&) = delete;
  Ngrams& operator=(const Ngrams&) = delete;

 private:
  void append_words(std::string_view part) {
    const std::vector<std::string_view> letters = split_characters(part);
    size_t split = part.size();
    if (letters.size() > 1 && is_ascii_punctuation(letters.back()))
      split = part.size() - 1;
    else if (letters.size() > 1 && is_ascii_punctuation(letters.front()))
      split = 1;
    for (const std::string_view word : {part.substr(0, split), part.substr(split)}) {
      if (word.empty()) continue;
      if (!words.empty()) words += ' ';
      words += word;
    }
  }

  void count(const std::vector<std::string_view>& units, int64_t orders) {
    for (int64_t order = 1; order <= orders; ++order) counts.push_back(count_ngrams(units, order));
  }
};

ChrfCounts compare(const Ngrams& hypothesis, const Ngrams& reference) {
  ChrfCounts counts;
  for (size_t i = 0; i < hypothesis.counts.size(); ++i) {
    ChrfCounts::Order& order = counts.orders.emplace_back();
    for (const auto& [ngram, count] : reference.counts[i]) order.reference += count;
    if (order.reference == 0) continue;
    for (const auto& [ngram, count] : hypothesis.counts[i]) {
      order.hypothesis += count;
      const auto found = reference.counts[i].find(ngram);
      if (found != reference.counts[i].end()) order.matches += std::min(count, found->second);
    }
  }
  return counts;
}

double share(int64_t matches, int64_t of) {
  return of > 0 ? static_cast<double>(matches) / static_cast<double>(of) : kEpsilon;
}

}  // namespace

std::string ChrfConfig::name() const {
  return fmt::format("chrF{}{}", beta, std::string(static_cast<size_t>(word_order), '+'));
}

std::string ChrfConfig::signature(int64_t references, std::string_view sampling) const {
  return fmt::format("nrefs:{}|{}{}case:{}|eff:{}|nc:{}|nw:{}|space:{}|version:gradstone-{}",
                     references, sampling, sampling.empty() ? "" : "|", lowercase ? "lc" : "mixed",
                     epsilon_smoothing ? "no" : "yes", character_order, word_order,
                     whitespace ? "yes" : "no", version);
}

ChrfCounts& ChrfCounts::operator+=(const ChrfCounts& other) {
  if (orders.empty()) orders.resize(other.orders.size());
  for (size_t i = 0; i < other.orders.size(); ++i) {
    orders[i].hypothesis += other.orders[i].hypothesis;
    orders[i].reference += other.orders[i].reference;
    orders[i].matches += other.orders[i].matches;
  }
  return *this;
}

ChrfCounts count_chrf(std::string_view hypothesis, std::span<const std::string_view> references,
                      const ChrfConfig& config) {
  check_config(config);
  check(!references.empty(), "count_chrf: there is no reference; give at least one");
  const Ngrams ngrams(hypothesis, config);
  ChrfCounts best;
  double best_score = -1;
  for (const std::string_view reference : references) {
    ChrfCounts counts = compare(ngrams, Ngrams(reference, config));
    const double score = chrf(counts, config);
    if (score <= best_score) continue;
    best_score = score;
    best = std::move(counts);
  }
  return best;
}

std::vector<ChrfCounts> count_chrf(std::span<const std::string> hypotheses,
                                   const References& references, const ChrfConfig& config) {
  check_references("chrf", hypotheses, references);
  std::vector<ChrfCounts> counts;
  counts.reserve(hypotheses.size());
  for (size_t i = 0; i < hypotheses.size(); ++i)
    counts.push_back(count_chrf(hypotheses[i], references_of(references, i), config));
  return counts;
}

double chrf(const ChrfCounts& counts, const ChrfConfig& config) {
  check_config(config);
  const auto factor = static_cast<double>(config.beta * config.beta);
  double sum = 0, precision = 0, recall = 0;
  int64_t effective = 0;
  for (const ChrfCounts::Order& order : counts.orders) {
    const double p = share(order.matches, order.hypothesis);
    const double r = share(order.matches, order.reference);
    const double weighted = factor * p + r;
    sum += weighted > 0 ? (1 + factor) * p * r / weighted : kEpsilon;
    if (order.hypothesis == 0 || order.reference == 0) continue;
    precision += p;
    recall += r;
    ++effective;
  }
  if (config.epsilon_smoothing)
    return 100 * sum / static_cast<double>(config.character_order + config.word_order);
  if (effective == 0 || precision + recall == 0) return 0;
  precision /= static_cast<double>(effective);
  recall /= static_cast<double>(effective);
  return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

double corpus_chrf(std::span<const std::string> hypotheses, const References& references,
                   const ChrfConfig& config) {
  ChrfCounts counts;
  for (const ChrfCounts& sentence : count_chrf(hypotheses, references, config)) counts += sentence;
  return chrf(counts, config);
}

}  // namespace gs
