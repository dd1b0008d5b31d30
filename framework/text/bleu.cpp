#include "framework/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/version.h"
#include "framework/text/ngrams.h"
#include "framework/text/unicode.h"
#include "framework/text/utf8.h"

namespace gs {
namespace {

constexpr std::array<std::pair<BleuSmoothing, std::string_view>, 4> kSmoothings{{
    {BleuSmoothing::kNone, "none"},
    {BleuSmoothing::kExponential, "exp"},
    {BleuSmoothing::kFloor, "floor"},
    {BleuSmoothing::kAddK, "add-k"},
}};

bool has_value(BleuSmoothing smoothing) {
  return smoothing == BleuSmoothing::kFloor || smoothing == BleuSmoothing::kAddK;
}

double value_of(const BleuConfig& config) {
  return config.smoothing_value.value_or(config.smoothing == BleuSmoothing::kFloor ? 0.1 : 1);
}

void check_config(const BleuConfig& config) {
  check(config.order >= 1 && config.order <= kMaxBleuOrder, "bleu: order must be 1 to {}, got {}",
        kMaxBleuOrder, config.order);
  check(value_of(config) >= 0 && std::isfinite(value_of(config)),
        "bleu: the value of smoothing must be 0 or more, got {}", value_of(config));
}

std::string prepared(std::string_view line, const BleuConfig& config) {
  return config.lowercase ? tokenize_for_bleu(lower_case(line), config.tokenizer)
                          : tokenize_for_bleu(line, config.tokenizer);
}

int64_t nearest_length(int64_t length,
                       const std::vector<std::vector<std::string_view>>& references) {
  int64_t nearest = -1;
  for (const auto& words : references) {
    const auto other = static_cast<int64_t>(words.size());
    const int64_t distance = std::abs(other - length), least = std::abs(nearest - length);
    if (nearest < 0 || distance < least || (distance == least && other < nearest)) nearest = other;
  }
  return nearest;
}

// How often an n-gram stands in the reference that holds it most often.
NgramCounts most_ngrams(const std::vector<std::vector<std::string_view>>& references,
                        int64_t order) {
  NgramCounts most = count_ngrams(references[0], order);
  for (size_t r = 1; r < references.size(); ++r) {
    for (const auto& [ngram, count] : count_ngrams(references[r], order)) {
      int64_t& before = most[ngram];
      before = std::max(before, count);
    }
  }
  return most;
}

std::string precisions_text(const BleuScore& score) {
  std::string text;
  for (size_t n = 0; n < static_cast<size_t>(score.order); ++n)
    text += fmt::format("{}{:.1f}", n == 0 ? "" : "/", score.precisions[n]);
  return text;
}

}  // namespace

BleuSmoothing parse_bleu_smoothing(std::string_view name) {
  const auto* const found = std::find_if(kSmoothings.begin(), kSmoothings.end(),
                                         [&](const auto& entry) { return entry.second == name; });
  check(found != kSmoothings.end(),
        "bleu: there is no such smoothing, got {}; use none, exp, floor or add-k", name);
  return found->first;
}

std::string BleuConfig::signature(int64_t references, std::string_view sampling) const {
  std::string smooth(kSmoothings[static_cast<size_t>(smoothing)].second);
  if (has_value(smoothing)) smooth += fmt::format("[{:.2f}]", value_of(*this));
  return fmt::format("nrefs:{}|{}{}case:{}|eff:{}|tok:{}|smooth:{}|version:gradstone-{}",
                     references, sampling, sampling.empty() ? "" : "|", lowercase ? "lc" : "mixed",
                     effective_order ? "yes" : "no", name_of(tokenizer), smooth, version);
}

BleuCounts& BleuCounts::operator+=(const BleuCounts& other) {
  for (size_t n = 0; n < kMaxBleuOrder; ++n) {
    matches[n] += other.matches[n];
    totals[n] += other.totals[n];
  }
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  return *this;
}

double BleuScore::length_ratio() const {
  if (counts.reference_length == 0) return 0;
  return static_cast<double>(counts.hypothesis_length) /
         static_cast<double>(counts.reference_length);
}

std::string BleuScore::details() const {
  return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})",
                     precisions_text(*this), brevity_penalty, length_ratio(),
                     counts.hypothesis_length, counts.reference_length);
}

std::string BleuScore::multi_bleu_text() const {
  return fmt::format("BLEU = {:.2f}, {} (BP={:.3f}, ratio={:.3f}, hyp_len={}, ref_len={})", score,
                     precisions_text(*this), brevity_penalty, length_ratio(),
                     counts.hypothesis_length, counts.reference_length);
}

BleuCounts count_bleu(std::string_view hypothesis, std::span<const std::string_view> references,
                      const BleuConfig& config) {
  check_config(config);
  check(!references.empty(), "count_bleu: there is no reference; give at least one");
  std::vector<std::string> texts;
  texts.reserve(references.size());
  for (const std::string_view reference : references) texts.push_back(prepared(reference, config));
  std::vector<std::vector<std::string_view>> reference_words;
  for (const std::string& text : texts) reference_words.push_back(split_words(text));
  const std::string text = prepared(hypothesis, config);
  const std::vector<std::string_view> words = split_words(text);

  BleuCounts counts;
  counts.hypothesis_length = static_cast<int64_t>(words.size());
  counts.reference_length = nearest_length(counts.hypothesis_length, reference_words);
  const auto orders = std::min(static_cast<size_t>(config.order), words.size());
  for (size_t n = 0; n < orders; ++n) {
    const auto order = static_cast<int64_t>(n + 1);
    counts.totals[n] = static_cast<int64_t>(words.size() - n);
    const NgramCounts most = most_ngrams(reference_words, order);
    for (const auto& [ngram, count] : count_ngrams(words, order)) {
      const auto found = most.find(ngram);
      if (found != most.end()) counts.matches[n] += std::min(count, found->second);
    }
  }
  return counts;
}

std::vector<BleuCounts> count_bleu(std::span<const std::string> hypotheses,
                                   const References& references, const BleuConfig& config) {
  check_references("bleu", hypotheses, references);
  std::vector<BleuCounts> counts;
  counts.reserve(hypotheses.size());
  for (size_t i = 0; i < hypotheses.size(); ++i)
    counts.push_back(count_bleu(hypotheses[i], references_of(references, i), config));
  return counts;
}

BleuScore bleu(const BleuCounts& counts, const BleuConfig& config) {
  check_config(config);
  BleuScore result{.brevity_penalty = 1, .counts = counts, .order = config.order};
  const auto words = static_cast<double>(counts.hypothesis_length);
  const auto reference_words = static_cast<double>(counts.reference_length);
  if (words < reference_words)
    result.brevity_penalty = words > 0 ? std::exp(1 - reference_words / words) : 0;
  if (counts.matches[0] == 0) return result;

  double log_sum = 0, share = 1;
  int orders = config.order, n = 0;
  for (; n < config.order; ++n) {
    const auto at = static_cast<size_t>(n);
    const double added = config.smoothing == BleuSmoothing::kAddK && n > 0 ? value_of(config) : 0;
    double matches = static_cast<double>(counts.matches[at]) + added;
    const double total = static_cast<double>(counts.totals[at]) + added;
    if (total == 0) break;
    if (config.effective_order) orders = n + 1;
    if (matches == 0 && config.smoothing == BleuSmoothing::kExponential) matches = share /= 2;
    if (matches == 0 && config.smoothing == BleuSmoothing::kFloor) matches = value_of(config);
    result.precisions[at] = 100 * matches / total;
    log_sum += std::log(result.precisions[at]);  // log(0) makes the score 0
  }
  if (n < orders) return result;  // an order without n-grams counts as 0
  result.score = result.brevity_penalty * std::exp(log_sum / orders);
  return result;
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses, const References& references,
                      const BleuConfig& config) {
  BleuCounts counts;
  for (const BleuCounts& sentence : count_bleu(hypotheses, references, config)) counts += sentence;
  return bleu(counts, config);
}

}  // namespace gs
