#include "framework/train/program_profile.h"

#include <cstdio>
#include <exception>
#include <mutex>

#include "framework/backend/memory.h"
#include "framework/core/error.h"
#include "framework/core/parallel.h"
#include "framework/core/profiler.h"
#include "framework/io/atomic_file.h"
#include "framework/train/interrupt.h"

namespace gs {
namespace {

constexpr int64_t kMaximumEvents = 200'000;  // some 25 MB of JSON, which viewers still open

struct ProgramProfile {
  std::mutex mutex;
  bool running = false;
  std::string trace_path;
};

ProgramProfile& program_profile() {
  static ProgramProfile& profile = *new ProgramProfile;  // an interrupt may come during exit
  return profile;
}

void finish_at_interrupt() {
  try {
    finish_program_profile();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "profile: %s\n", error.what());
  }
}

}  // namespace

void start_program_profile(const std::string& trace_path) {
  ProgramProfile& program = program_profile();
  const std::lock_guard lock(program.mutex);
  if (!trace_path.empty()) AtomicFile probe(trace_path);  // fails now rather than at the end
  start_profiling({.maximum_events = trace_path.empty() ? 0 : kMaximumEvents});
  program.running = true;
  program.trace_path = trace_path;
  before_interrupt_ends(finish_at_interrupt);
}

void finish_program_profile() {
  ProgramProfile& program = program_profile();
  const std::lock_guard lock(program.mutex);
  if (!program.running) return;
  program.running = false;
  const Profile profile = stop_profiling();
  const double peak = static_cast<double>(memory_figures().peak) / (1 << 20);
  std::string text = fmt::format("\n{}{} threads; arrays held at most {:.1f} MiB at once\n",
                                 profile.text(), threads(), peak);
  std::fputs(text.c_str(), stderr);
  if (program.trace_path.empty()) return;
  write_file_atomically(program.trace_path, profile.trace());
  text = fmt::format("Trace: {} events in {}", profile.events.size(), program.trace_path);
  if (profile.events_left_out > 0)
    text += fmt::format("; the {} after them are left out", profile.events_left_out);
  std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace gs
