#include "framework/backend/instruction_set.h"

#include <hwy/targets.h>

#include <array>
#include <cstdlib>

namespace gs::backend {
namespace {

struct Level {
  InstructionSet set;
  const char *name, *title;
  int64_t target;  // Highway's; plain code runs where none of them is there
};

constexpr std::array kLevels{
    Level{InstructionSet::kBaseline, "baseline", "baseline", 0},
    Level{InstructionSet::kSse4, "sse4", "SSE4", HWY_SSE4},
    Level{InstructionSet::kAvx2, "avx2", "AVX2", HWY_AVX2},
    Level{InstructionSet::kAvx512, "avx512", "AVX-512", HWY_AVX3},
};

InstructionSet best_of_processor() {
  InstructionSet best = InstructionSet::kBaseline;
  const int64_t supported = hwy::SupportedTargets();
  for (const Level& level : kLevels)
    if ((supported & level.target) != 0) best = level.set;
  return best;
}

// Highway's better targets are lower bits, so all below that of the set are taken away.
void limit_kernels(InstructionSet set) {
  const int64_t target = kLevels[static_cast<size_t>(set)].target;
  constexpr int64_t vectors = (int64_t{1} << (HWY_HIGHEST_TARGET_BIT_X86 + 1)) - 1;
  hwy::DisableTargets(target == 0 ? vectors : target - 1);
}

std::string wish() {
  const char* text = std::getenv("GRADSTONE_SIMD");
  return text == nullptr ? "" : text;
}

}  // namespace

InstructionSet instruction_set_named(const std::string& name, InstructionSet best) {
  if (name.empty()) return best;
  for (const Level& level : kLevels) {
    if (name != level.name) continue;
    check(level.set <= best, "GRADSTONE_SIMD: this processor has no {}, got '{}'; its best is {}",
          level.title, name, kLevels[static_cast<size_t>(best)].name);
    return level.set;
  }
  fail(
      "GRADSTONE_SIMD: unknown, got '{}'; use baseline, sse4, avx2 or avx512 (the best here is {})",
      name, kLevels[static_cast<size_t>(best)].name);
}

InstructionSet instruction_set(Cpu) {
  static const InstructionSet chosen = [] {
    const InstructionSet set = instruction_set_named(wish(), best_of_processor());
    if (instruction_set_is_named(Cpu{})) limit_kernels(set);
    return set;
  }();
  return chosen;
}

bool instruction_set_is_named(Cpu) { return !wish().empty(); }

const char* title(InstructionSet set) { return kLevels[static_cast<size_t>(set)].title; }

}  // namespace gs::backend
