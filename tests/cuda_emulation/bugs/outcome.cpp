#include "tests/cuda_emulation/bugs/outcome.h"

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace gs::cuda_emulation {
namespace {

// Between the two texts, which stand in the output in this order; "" where they don't.
std::string between(const std::string& output, const std::string& before,
                    const std::string& after) {
  const size_t begin = output.find(before);
  if (begin == std::string::npos) return "";
  const size_t end = output.find(after, begin + before.size());
  return output.substr(begin + before.size(), end - begin - before.size());
}

}  // namespace

std::string finder_of(const std::string& bug, const std::string& mode) {
  const test::CommandResult result = test::run_command(
      "GRADSTONE_CUDA_EMULATION=" + mode + " ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS= " +
      "TSAN_OPTIONS=halt_on_error=1 '" + test::program("cuda_bugs") + "' " + bug);
  const std::string& output = result.output;
  for (const char* sanitizer : {"AddressSanitizer", "ThreadSanitizer"}) {
    if (output.find(sanitizer) != std::string::npos) return sanitizer;
  }
  if (output.find("runtime error: ") != std::string::npos) return "UndefinedBehaviorSanitizer";
  const std::string kind = between(output, "cuda emulation: ", ":");
  for (const char* own : {"wrong values", "error code"}) {
    if (output.find(own) != std::string::npos) return own;
  }
  if (!kind.empty()) return "emulation: " + kind;
  return result.status == 0 ? "" : "exit status " + std::to_string(result.status);
}

}  // namespace gs::cuda_emulation
