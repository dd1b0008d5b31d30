// What the parts of cusim share, and what a test may set.
#pragma once
#include "cusim.h"

#include <cstddef>

namespace cusim {

enum class Schedule { kAscending, kDescending, kRandom };
enum class Streams { kEager, kDeferred };
struct Options {
  Schedule schedule = Schedule::kAscending;
  Streams streams = Streams::kEager;
  unsigned seed = 1;
  bool between_blocks = false;  // ThreadSanitizer: look for races between blocks, not within one.
  bool abort_on_error = true;
  int errors = 0;  // Reported so far.
};
extern Options options;

struct Copy {
  void* dst;
  const void* src;
  size_t bytes, src_bytes;
};
[[gnu::format(printf, 2, 3)]] void report(const char* kind, const char* format, ...);
void run_grid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()>& body);
bool in_kernel();
// Puts work on a stream; gives the error that the real runtime would.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

}  // namespace cusim
