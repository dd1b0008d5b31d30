#include "datasets/held_out.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "datasets/text_hash.h"
#include "framework/core/error.h"
#include "framework/core/xoshiro.h"

namespace gs {
namespace {

// The pairs in the order of their sources' hashes; those of one source stand together.
std::vector<int64_t> hash_order(std::span<const std::string> sources, uint64_t seed) {
  std::vector<uint64_t> hashes;
  hashes.reserve(sources.size());
  const uint64_t key = splitmix64(seed);
  for (const std::string& source : sources) {
    uint64_t state = hash_text(source) ^ key;
    hashes.push_back(splitmix64(state));
  }
  std::vector<int64_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t first, int64_t second) {
    const auto a = static_cast<size_t>(first), b = static_cast<size_t>(second);
    return std::tie(hashes[a], sources[a], first) < std::tie(hashes[b], sources[b], second);
  });
  return order;
}

}  // namespace

std::vector<Purpose> hold_out(std::span<const std::string> sources, HeldOutConfig config) {
  check(config.valid_pairs >= 0 && config.test_pairs >= 0,
        "held out: numbers of pairs are 0 or more, got {} for validation and {} for the test",
        config.valid_pairs, config.test_pairs);
  std::vector<Purpose> purposes(sources.size(), Purpose::kTraining);
  const std::vector<int64_t> order = hash_order(sources, config.seed);
  auto next = order.begin();
  for (const auto& [purpose, wanted] : {std::pair(Purpose::kTest, config.test_pairs),
                                        std::pair(Purpose::kValidation, config.valid_pairs)}) {
    const std::string* last = nullptr;
    for (int64_t taken = 0; next != order.end(); ++next, ++taken) {
      const std::string& source = sources[static_cast<size_t>(*next)];
      if (taken >= wanted && (last == nullptr || source != *last)) break;
      purposes[static_cast<size_t>(*next)] = purpose;
      last = &source;
    }
  }
  check(next != order.end() || (config.valid_pairs == 0 && config.test_pairs == 0),
        "held out: {} pairs are too few to hold out {} for validation and {} for the test, with "
        "all translations of each of their sentences; lower the numbers, or give files",
        sources.size(), config.valid_pairs, config.test_pairs);
  return purposes;
}

}  // namespace gs
