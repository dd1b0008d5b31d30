#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gs {

// Right translations of a corpus: references[r][i] is the r-th one of sentence i.
using References = std::vector<std::vector<std::string>>;

// Throws unless there is at least one reference, each with one line for every hypothesis.
void check_references(std::string_view operation, std::span<const std::string> hypotheses,
                      const References& references);

// All references of one sentence; the strings must outlive them.
std::vector<std::string_view> references_of(const References& references, size_t sentence);

}  // namespace gs
