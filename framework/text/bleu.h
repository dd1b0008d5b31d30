#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/bleu_tokenizer.h"
#include "framework/text/references.h"

namespace gs {

constexpr int kMaxBleuOrder = 4;

// What an order of n-grams without a match counts as (Chen and Cherry, "A systematic comparison of
// smoothing techniques for sentence-level BLEU", WMT 2014), under the names of sacreBLEU:
// "none": nothing, the score is 0; "exp": 1/2, 1/4, 1/8 ... of a match, halved at each such order
// (NIST's mteval-v13a); "floor": a small number of matches, 0.1; "add-k": 1 is added to matches
// and n-grams of every order but the first. Where not a single word matches, the score is 0 always.
enum class BleuSmoothing { kNone, kExponential, kFloor, kAddK };
BleuSmoothing parse_bleu_smoothing(std::string_view name);

// The defaults are those of sacreBLEU.
struct BleuConfig {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;
  BleuSmoothing smoothing = BleuSmoothing::kExponential;
  std::optional<double> smoothing_value = {};  // of kFloor and kAddK
  int order = kMaxBleuOrder;                   // longest n-grams, 1 to 4
  bool effective_order = false;  // leaves orders without n-grams out: for single sentences

  // How scores were computed, in sacreBLEU's notation but with this library's version:
  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:gradstone-0.1.0". `sampling` is what
  // BootstrapConfig::signature() says, if scores were resampled.
  std::string signature(int64_t references = 1, std::string_view sampling = "") const;
};

// All that BLEU needs to know of a corpus; the counts of parts add up to those of the whole.
struct BleuCounts {
  std::array<int64_t, kMaxBleuOrder> matches{};  // n-grams found in a reference, clipped
  std::array<int64_t, kMaxBleuOrder> totals{};   // n-grams of the hypothesis
  int64_t hypothesis_length = 0;                 // words
  int64_t reference_length = 0;                  // of the reference nearest in length

  BleuCounts& operator+=(const BleuCounts& other);
  bool operator==(const BleuCounts&) const = default;
};

struct BleuScore {
  double score = 0;                                // 0 to 100
  std::array<double, kMaxBleuOrder> precisions{};  // 0 to 100, smoothed
  double brevity_penalty = 0;
  BleuCounts counts;
  int order = kMaxBleuOrder;

  double length_ratio() const;  // hypothesis to reference; 0 for a reference without words
  // sacreBLEU's: "71.0/47.5/34.3/24.5 (BP = 0.999 ratio = 0.999 hyp_len = 12096 ref_len = 12103)".
  std::string details() const;
  // That of Moses' multi-bleu.perl:
  // "BLEU = 41.02, 71.0/47.5/34.3/24.5 (BP=0.999, ratio=0.999, hyp_len=12096, ref_len=12103)".
  std::string multi_bleu_text() const;
};

// The counts of one sentence with one or several references: an n-gram may match as often as it
// stands in one of them; the length is that of the nearest, the shorter of two.
BleuCounts count_bleu(std::string_view hypothesis, std::span<const std::string_view> references,
                      const BleuConfig& config = {});
// The counts of each sentence of a corpus.
std::vector<BleuCounts> count_bleu(std::span<const std::string> hypotheses,
                                   const References& references, const BleuConfig& config = {});

// Papineni et al., "BLEU: a method for automatic evaluation of machine translation", ACL 2002:
// geometric mean of the precisions of order 1 to config.order, times exp(1 - r / h) where the
// hypotheses are shorter; in all particulars as sacreBLEU from version 2 on computes it (Post, "A
// call for clarity in reporting BLEU scores", WMT 2018).
BleuScore bleu(const BleuCounts& counts, const BleuConfig& config = {});

// The score of a corpus; differing counts of lines are refused.
BleuScore corpus_bleu(std::span<const std::string> hypotheses, const References& references,
                      const BleuConfig& config = {});

}  // namespace gs
