#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gs {

constexpr int kMaxBleuOrder = 4;

// All that BLEU needs to know of a corpus; the counts of parts add up to those of the whole.
struct BleuCounts {
  std::array<int64_t, kMaxBleuOrder> matches{};  // n-grams found in the reference, clipped
  std::array<int64_t, kMaxBleuOrder> totals{};   // n-grams of the hypothesis
  int64_t hypothesis_length = 0;                 // words
  int64_t reference_length = 0;

  BleuCounts& operator+=(const BleuCounts& other);
  bool operator==(const BleuCounts&) const = default;
};

// The counts of one sentence. Words are what split_words gives; case and marks count.
BleuCounts count_bleu(std::string_view hypothesis, std::string_view reference);

// An order without a single match makes the score 0 (kNone), or counts as 1/2, 1/4, 1/8 ... of a
// match, halved at each such order (kExponential, NIST's mteval-v13a and sacreBLEU's "exp"; where
// not one word matches, sacreBLEU from version 2 on gives 0 instead of what the formula says).
enum class BleuSmoothing { kNone, kExponential };

struct BleuScore {
  double score = 0;                                // 0 to 100
  std::array<double, kMaxBleuOrder> precisions{};  // 0 to 100
  double brevity_penalty = 0;
  BleuCounts counts;
  int order = kMaxBleuOrder;
  BleuSmoothing smoothing = BleuSmoothing::kNone;

  // How it was computed, in sacreBLEU's notation: "nrefs:1|case:mixed|eff:no|tok:none|smooth:none".
  std::string signature() const;
  std::string text() const;  // "BLEU 54.88 (100.0/...; brevity 0.549, 5 words to 8) nrefs:1|..."
};

// Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002:
// geometric mean of the precisions of order 1 to `order`, times exp(1 - r / h) where the
// hypotheses are shorter. A hypothesis corpus without words, or without an n-gram of the highest
// order, scores 0 whatever the smoothing.
BleuScore bleu(const BleuCounts& counts, BleuSmoothing smoothing = BleuSmoothing::kNone,
               int order = kMaxBleuOrder);

// The score of a corpus with one reference for each hypothesis; differing counts are refused.
BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::string> references,
                      BleuSmoothing smoothing = BleuSmoothing::kNone, int order = kMaxBleuOrder);

}  // namespace gs
