#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gs {

// The least N of the folders seed_N in `folder` with a checkpoint.
std::optional<uint64_t> first_seed_in(const std::string& folder);

// Puts the summary.json of several runs, which differ in their seeds alone, together in
// `folder`/summary.json: in place of each number that all of them have stand its "mean",
// "standard_deviation" (of a sample: by n - 1; null for a single run) and "values" in the order of
// `runs`. Prints the scores of the tests.
void summarise_runs(const std::vector<std::string>& runs, const std::string& folder);

}  // namespace gs
