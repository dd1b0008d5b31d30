#pragma once

#include <string>
#include <vector>

namespace gs::cuda_emulation {

// Runs one planted bug with the program cuda_bugs, in a mode of the emulation, and gives what found
// it: "emulation: divergence", "AddressSanitizer", "wrong values", "error code", or "" where
// nothing did.
std::string finder_of(const std::string& bug, const std::string& mode);

}  // namespace gs::cuda_emulation
