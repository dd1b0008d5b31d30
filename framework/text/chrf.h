#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/text/references.h"

namespace gs {

// The defaults are those of sacreBLEU, for chrF; chrF++ has .word_order = 2.
struct ChrfConfig {
  int64_t character_order = 6;  // longest n-grams of characters
  int64_t word_order = 0;       // and of words
  int64_t beta = 2;             // how many times recall counts as much as precision
  bool lowercase = false;
  bool whitespace = false;         // n-grams of characters see the spaces too
  bool epsilon_smoothing = false;  // orders without n-grams count as 1e-16 instead of not at all

  std::string name() const;  // "chrF2" or "chrF2++"
  // How scores were computed, as BleuConfig::signature() says it:
  // "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:gradstone-0.1.0".
  std::string signature(int64_t references = 1, std::string_view sampling = "") const;
};

// What chrF needs to know of a corpus, for each order, characters first; the counts of parts add up
// to those of the whole. Without counts it is the zero of that sum.
struct ChrfCounts {
  struct Order {
    int64_t hypothesis = 0;  // n-grams; 0 where the reference has none of this order
    int64_t reference = 0;
    int64_t matches = 0;
    bool operator==(const Order&) const = default;
  };
  std::vector<Order> orders = {};

  ChrfCounts& operator+=(const ChrfCounts& other);
  bool operator==(const ChrfCounts&) const = default;
};

// The counts of one sentence; of several references, those with the one that scores best, the first
// of equals. Characters are code points; a word of two or more gives up one ASCII punctuation mark
// at its end, or else at its beginning, as a word of its own.
ChrfCounts count_chrf(std::string_view hypothesis, std::span<const std::string_view> references,
                      const ChrfConfig& config = {});
// The counts of each sentence of a corpus.
std::vector<ChrfCounts> count_chrf(std::span<const std::string> hypotheses,
                                   const References& references, const ChrfConfig& config = {});

// 0 to 100. Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015, and
// "chrF++: words helping character n-grams", WMT 2017; in all particulars as sacreBLEU from version
// 2 on: the F-score of the precisions and recalls averaged over the orders that both sides have.
double chrf(const ChrfCounts& counts, const ChrfConfig& config = {});

// The score of a corpus; differing counts of lines are refused.
double corpus_chrf(std::span<const std::string> hypotheses, const References& references,
                   const ChrfConfig& config = {});

}  // namespace gs
