#include "framework/backend/instruction_set.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "framework/backend/array.h"
#include "framework/backend/gemm.h"
#include "tests/support/support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/backend/instruction_set_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gs::HWY_NAMESPACE {
namespace {

int64_t target() { return HWY_TARGET; }

}  // namespace
}  // namespace gs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs {
namespace {

HWY_EXPORT(target);

using backend::instruction_set_named;
using backend::InstructionSet;

std::string named() {
  const char* name = std::getenv("GRADSTONE_SIMD");
  return name == nullptr ? "" : name;
}

TEST(InstructionSet, NamesMeanASetThatTheProcessorHas) {
  for (const InstructionSet best : {InstructionSet::kBaseline, InstructionSet::kAvx512})
    EXPECT_EQ(instruction_set_named("", best), best);
  EXPECT_EQ(instruction_set_named("baseline", InstructionSet::kAvx512), InstructionSet::kBaseline);
  EXPECT_EQ(instruction_set_named("sse4", InstructionSet::kAvx512), InstructionSet::kSse4);
  EXPECT_EQ(instruction_set_named("avx2", InstructionSet::kAvx2), InstructionSet::kAvx2);
  EXPECT_EQ(test::error_of([] { instruction_set_named("avx512", InstructionSet::kAvx2); }),
            "GRADSTONE_SIMD: this processor has no AVX-512, got 'avx512'; its best is avx2");
  EXPECT_EQ(
      test::error_of([] { instruction_set_named("AVX2", InstructionSet::kSse4); }),
      "GRADSTONE_SIMD: unknown, got 'AVX2'; use baseline, sse4, avx2 or avx512 (the best here "
      "is sse4)");
}

// Runs under CTest once for each value of the variable, and without it.
TEST(InstructionSet, KernelsAndLibrariesRunWithTheOneThatIsNamed) {
  for (const char* variable : {"OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (std::getenv(variable) != nullptr)
      GTEST_SKIP() << variable << " is set: a library has its own orders";
  }
  const Array first = Array::empty({1}, kFloat32);
  const InstructionSet set = backend::instruction_set(Cpu{});
  const int64_t target = HWY_DYNAMIC_DISPATCH(target)();
  const std::vector<std::string> libraries = backend::gemm_libraries();
  const auto expect = [&](InstructionSet expected_set, int64_t expected_target,
                          const std::vector<std::string>& expected_libraries) {
    EXPECT_EQ(set, expected_set);
    EXPECT_EQ(target, expected_target) << hwy::TargetName(target);
    for (const std::string& library : libraries)
      EXPECT_NE(std::find(expected_libraries.begin(), expected_libraries.end(), library),
                expected_libraries.end())
          << library;
  };
  const std::string name = named();
  if (name == "baseline")
    expect(InstructionSet::kBaseline, HWY_STATIC_TARGET, {"OpenBLAS (Prescott)", "oneDNN (SSE4)"});
  if (name == "sse4")
    expect(InstructionSet::kSse4, HWY_SSE4, {"OpenBLAS (Nehalem)", "oneDNN (SSE4)"});
  if (name == "avx2")
    expect(InstructionSet::kAvx2, HWY_AVX2, {"OpenBLAS (Haswell)", "oneDNN (AVX2)"});
  if (name == "avx512" || (name.empty() && set == InstructionSet::kAvx512))
    expect(InstructionSet::kAvx512, HWY_AVX3, {"OpenBLAS (SkylakeX)", "oneDNN (AVX-512)"});
}

TEST(InstructionSet, AWrongNameIsAnErrorOfTheFirstArray) {
  const test::CommandResult result =
      test::run_command("GRADSTONE_SIMD=mmx /proc/" + std::to_string(getpid()) +
                        "/exe --gtest_filter=Array.HandlesShareMemoryAndCopiesDoNot");
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("GRADSTONE_SIMD: unknown, got 'mmx'; use"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace gs
#endif
