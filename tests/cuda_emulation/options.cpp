#include "tests/cuda_emulation/options.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace gs::cuda_emulation {
namespace {

void apply(Options& options, const std::string& word) {
  constexpr std::string_view kRandom = "random:";
  if (word == "ascending") {
    options.order = Order::kAscending;
  } else if (word == "descending") {
    options.order = Order::kDescending;
  } else if (word.starts_with(kRandom)) {
    options.order = Order::kRandom;
    options.seed = static_cast<uint32_t>(std::strtoul(word.c_str() + kRandom.size(), nullptr, 10));
  } else if (word == "eager" || word == "deferred") {
    options.deferred = word == "deferred";
  } else if (word == "between_blocks") {
    options.between_blocks = true;
  } else if (word == "refuse_epilogues") {
    options.refuse_epilogues = true;
  } else if (word == "leaks") {
    options.leaks = true;
  } else if (!word.empty()) {
    stop("options",
         "GRADSTONE_CUDA_EMULATION: unknown word '%s'; use ascending, descending, random:SEED, "
         "eager, deferred, between_blocks, refuse_epilogues, leaks",
         word.c_str());
  }
}

Options from_environment() {
  Options options;
  const char* const text = std::getenv("GRADSTONE_CUDA_EMULATION");
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t end = rest.find(',');
    apply(options, std::string(rest.substr(0, end)));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return options;
}

}  // namespace

const Options& options() {
  static const Options options = from_environment();
  return options;
}

void stop(const char* kind, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::fprintf(stderr, "cuda emulation: %s: ", kind);
  std::vfprintf(stderr, format, list);
  std::fprintf(stderr, "\n");
  va_end(list);
  std::abort();
}

}  // namespace gs::cuda_emulation
