#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "framework/text/byte_pairs.h"

namespace gs {

// Learns at most `merges` merges from the words of these lines, as `subword-nmt learn-bpe` does:
// the most frequent pair of symbols becomes one, equal counts by the greater spelling, until no
// pair occurs twice. Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with
// Subword Units", ACL 2016. Lines in which no pair occurs twice are refused, as are lines that are
// not UTF-8.
BytePairs learn_byte_pairs(std::span<const std::string> lines, int64_t merges);

}  // namespace gs
