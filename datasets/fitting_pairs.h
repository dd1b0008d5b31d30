#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/translation_data.h"
#include "framework/text/sequences.h"

namespace gs {

// A pair that is too long for a model, in tokens without marks.
struct LongPair {
  int64_t pair = 0;
  int64_t source_tokens = 0, target_tokens = 0;

  bool operator==(const LongPair&) const = default;
};

// The pairs of a split as tokens, without those that a model cannot take.
struct FittingPairs {
  Sequences source, target;
  std::vector<int64_t> pairs;      // their numbers in the split, ascending
  std::vector<LongPair> left_out;  // ascending
};

// Leaves out pairs of which a side has more than `longest` tokens. One target for each source.
FittingPairs fitting_pairs(Sequences source, Sequences target, int64_t longest);

// "train: 2 pairs are left out, longer than 255 tokens (--maximum-length counts an end mark more):
// line 7 (300 and 280), line 9 (12 and 256)", with the first few of them.
std::string long_pairs_note(const TranslationSplit& split, const FittingPairs& fitting,
                            int64_t longest);

// Keeps the pairs of those numbers (ascending) alone.
void keep_pairs(TranslationSplit& split, const std::vector<int64_t>& pairs);

}  // namespace gs
