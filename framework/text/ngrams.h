#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

namespace gs {

// How often each n-gram stands in a line. The keys are parts of that line, which must outlive them.
using NgramCounts = std::unordered_map<std::string_view, int64_t>;

// Counts runs of `order` units, words or characters. The units follow each other in one string with
// the same between all of them, one space or nothing, so that equal n-grams are equal texts.
NgramCounts count_ngrams(std::span<const std::string_view> units, int64_t order);

}  // namespace gs
