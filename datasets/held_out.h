#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gs {

// Where a pair goes.
enum class Purpose : uint8_t { kTraining, kValidation, kTest };

struct HeldOutConfig {
  int64_t valid_pairs = 0, test_pairs = 0;  // 0: none
  uint64_t seed = 1;
};

// Chooses pairs to be held out of training, source sentence by source sentence: all translations
// of one sentence have the same purpose, so that nothing that is scored was trained on. Sentences
// are taken in the order of a hash of seed and sentence, whatever their order in the corpus, for
// the test first and until there are at least as many pairs as wanted. Sentences that differ in
// letter case are two. Wanting more than leaves one sentence for training is an Error.
std::vector<Purpose> hold_out(std::span<const std::string> sources, HeldOutConfig config);

}  // namespace gs
