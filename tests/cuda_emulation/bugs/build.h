#pragma once

#include <string_view>
#include <vector>

#include "tests/cuda_emulation/sanitizers.h"

namespace gs::cuda_emulation {

// What a build can find depends on its sanitizer.
enum class Build { kPlain, kAddress, kThread };

#if defined(__SANITIZE_THREAD__)
constexpr Build kBuild = Build::kThread;
#elif defined(GS_ADDRESS_SANITIZER)
constexpr Build kBuild = Build::kAddress;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr Build kBuild = Build::kThread;
#else
constexpr Build kBuild = Build::kPlain;
#endif
#else
constexpr Build kBuild = Build::kPlain;
#endif

constexpr std::string_view preset_of(Build build) {
  return build == Build::kPlain ? "emulate" : build == Build::kAddress ? "sanitize" : "race";
}

}  // namespace gs::cuda_emulation
