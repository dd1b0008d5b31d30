#include "tests/support/instruction_sets.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <string>

#include "framework/backend/instruction_set.h"

namespace gs::test {

void for_each_instruction_set(const std::function<void()>& body) {
  backend::instruction_set(Cpu{});  // may be limited by GRADSTONE_SIMD
  const int64_t supported = hwy::SupportedTargets();
  const auto choose = [](int64_t targets) {
    hwy::SetSupportedTargetsForTest(targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  };
  // Targets are bits, better ones lower.
  for (int bit = 62; bit >= 0; --bit) {
    const int64_t target = int64_t{1} << bit;
    if ((supported & target) == 0 || (HWY_TARGETS & target) == 0) continue;
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, hwy::TargetName(target));
    choose(target);
    body();
  }
  choose(0);
}

}  // namespace gs::test
