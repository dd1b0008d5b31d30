// Planted bugs of CUDA programs, which the emulation must find.
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/cuda_emulation/bugs/bench.h"
#include "tests/cuda_emulation/bugs/build.h"
#include "tests/cuda_emulation/bugs/outcome.h"

namespace gs::cuda_emulation {
namespace {

constexpr char kUsage[] =
    "usage: cuda_bugs NAME     runs the bug of that name; what finds it says so\n"
    "       cuda_bugs --list   the names\n"
    "       cuda_bugs --table  what finds each bug in each mode of the emulation, in this build\n";

int run(const Bug& bug) {
  std::vector<float> values(Bench::kWidth);
  std::vector<float> right;
  try {
    Bench bench;
    right = bug.run(bench);
    check_call(cudaStreamSynchronize(bench.first), "cudaStreamSynchronize");
    // Not bench.second: what nobody waited for may not have happened.
    check_call(
        cudaMemcpy(values.data(), bench.y, values.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  } catch (const Error& error) {
    std::printf("error code: %s\n", error.what());
    return 3;
  }
  int wrong = 0;
  for (size_t i = 0; i < right.size(); ++i) wrong += values[i] == right[i] ? 0 : 1;
  if (wrong > 0) std::printf("wrong values: %d of %zu\n", wrong, right.size());
  return wrong > 0 ? 2 : 0;
}

std::vector<std::string> modes() {
  switch (kBuild) {
    case Build::kPlain:
      return {"ascending", "descending", "random:3", "deferred", "leaks"};
    case Build::kAddress:
      return {"ascending", "deferred"};
    case Build::kThread:
      return {"ascending", "random:3", "between_blocks"};
  }
  return {};
}

void print_table() {
  std::printf("| %s | bug |", std::string(preset_of(kBuild)).c_str());
  for (const std::string& mode : modes()) std::printf(" %s |", mode.c_str());
  std::printf("\n|---|---|");
  for (size_t i = 0; i < modes().size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const Bug& bug : all_bugs()) {
    std::printf("| %s | %s |", bug.name, bug.what);
    for (const std::string& mode : modes()) std::printf(" %s |", finder_of(bug.name, mode).c_str());
    std::printf("\n");
    std::fflush(stdout);
  }
}

int main(const std::string& argument) {
  std::vector<Bug> programs = all_bugs();
  for (const Bug& sound : sound_programs()) programs.push_back(sound);
  if (argument == "--table") return print_table(), 0;
  for (const Bug& program : programs) {
    if (argument == "--list") std::printf("%s\n", program.name);
    if (argument == program.name) return run(program);
  }
  if (argument == "--list") return 0;
  std::fputs(kUsage, stderr);
  return 1;
}

}  // namespace
}  // namespace gs::cuda_emulation

int main(int count, char** arguments) {
  return gs::cuda_emulation::main(count == 2 ? arguments[1] : "");
}
