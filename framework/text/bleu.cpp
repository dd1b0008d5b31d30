#include "framework/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "framework/core/error.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

using NgramCounts = std::unordered_map<std::string, int64_t>;

// Words hold no spaces, so the joined text names an n-gram without doubt.
NgramCounts count_ngrams(const std::vector<std::string_view>& words, size_t order) {
  NgramCounts counts;
  for (size_t begin = 0; begin + order <= words.size(); ++begin) {
    std::string ngram(words[begin]);
    for (size_t i = 1; i < order; ++i) (ngram += ' ') += words[begin + i];
    ++counts[std::move(ngram)];
  }
  return counts;
}

}  // namespace

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < kMaxBleuOrder; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

BleuCounts count_bleu(std::string_view hypothesis, std::string_view reference) {
  const std::vector<std::string_view> words = split_words(hypothesis);
  const std::vector<std::string_view> reference_words = split_words(reference);
  BleuCounts counts;
  counts.hypothesis_length = static_cast<int64_t>(words.size());
  counts.reference_length = static_cast<int64_t>(reference_words.size());
  for (size_t n = 0; n < std::min<size_t>(kMaxBleuOrder, words.size()); ++n) {
    counts.totals[n] = static_cast<int64_t>(words.size() - n);
    const NgramCounts in_reference = count_ngrams(reference_words, n + 1);
    for (const auto& [ngram, count] : count_ngrams(words, n + 1)) {
      const auto found = in_reference.find(ngram);
      if (found != in_reference.end()) counts.matches[n] += std::min(count, found->second);
    }
  }
  return counts;
}

BleuScore bleu(const BleuCounts& counts, BleuSmoothing smoothing, int order) {
  check(order >= 1 && order <= kMaxBleuOrder, "bleu: order must be 1 to {}, got {}", kMaxBleuOrder,
        order);
  BleuScore result{.counts = counts, .order = order, .smoothing = smoothing};
  if (counts.hypothesis_length == 0) return result;
  const double ratio =
      static_cast<double>(counts.reference_length) / static_cast<double>(counts.hypothesis_length);
  result.brevity_penalty = ratio > 1 ? std::exp(1 - ratio) : 1;
  double log_sum = 0, share = 1;
  for (size_t n = 0; n < static_cast<size_t>(order); ++n) {
    double matches = static_cast<double>(counts.matches[n]);
    if (matches == 0 && smoothing == BleuSmoothing::kExponential) matches = share /= 2;
    if (counts.totals[n] > 0)
      result.precisions[n] = 100 * matches / static_cast<double>(counts.totals[n]);
    log_sum += std::log(result.precisions[n]);  // log(0) makes the score 0
  }
  result.score = result.brevity_penalty * std::exp(log_sum / order);
  return result;
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::string> references, BleuSmoothing smoothing, int order) {
  check(hypotheses.size() == references.size(),
        "corpus_bleu: counts differ, got {} hypotheses and {} references; give one reference for "
        "each hypothesis",
        hypotheses.size(), references.size());
  BleuCounts counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) counts += count_bleu(hypotheses[i], references[i]);
  return bleu(counts, smoothing, order);
}

std::string BleuScore::signature() const {
  return fmt::format("nrefs:1|case:mixed|eff:no|tok:none|smooth:{}",
                     smoothing == BleuSmoothing::kNone ? "none" : "exp");
}

std::string BleuScore::text() const {
  std::string parts;
  for (size_t n = 0; n < static_cast<size_t>(order); ++n)
    parts += fmt::format("{}{:.1f}", n == 0 ? "" : "/", precisions[n]);
  return fmt::format("BLEU {:.2f} ({}; brevity {:.3f}, {} words to {}) {}", score, parts,
                     brevity_penalty, counts.hypothesis_length, counts.reference_length,
                     signature());
}

}  // namespace gs
