#pragma once

#include <cstdint>

namespace gs::cuda_emulation {

enum class Order { kAscending, kDescending, kRandom };

// How the emulation works, from the environment variable GRADSTONE_CUDA_EMULATION: words separated
// by commas. An unknown word stops the program.
struct Options {
  // "ascending", "descending", "random:SEED": in which order the threads of a block go on, and with
  // which block a grid begins.
  Order order = Order::kAscending;
  uint32_t seed = 1;
  // "eager": a stream works at once. "deferred": only when something waits for it, independent
  // nodes of a graph in reverse, so that whatever was not waited for has not happened.
  bool deferred = false;
  // "between_blocks": ThreadSanitizer looks for races between the blocks of a grid, not within one.
  bool between_blocks = false;
  // "refuse_epilogues": cuBLASLt finds no algorithm for an epilogue but the default.
  bool refuse_epilogues = false;
  // "leaks": device memory, streams, events and graphs that are still there at the end stop the
  // program with an error.
  bool leaks = false;
};
const Options& options();

// Prints "cuda emulation: <kind>: <text>" and stops the program: what the hardware would answer
// with a crash, wrong numbers or silence.
[[noreturn, gnu::format(printf, 2, 3)]] void stop(const char* kind, const char* format, ...);

}  // namespace gs::cuda_emulation
