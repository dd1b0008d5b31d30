#pragma once

#include <cstddef>

namespace gs::cuda_emulation {

// A stack of its own on which one logical thread after the other runs, and what ThreadSanitizer
// takes for a thread.
struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  void* frames = nullptr;   // AddressSanitizer's
  void* context = nullptr;  // ThreadSanitizer's
};

// Fibers live as long as the program. `body` must never return.
Fiber* new_fiber(void (*body)());
size_t fiber_count();

// Goes on with the fiber until it calls leave_fiber().
void run_fiber(Fiber* fiber);
void leave_fiber();
// To be called first on a new fiber.
void begin_fiber();
Fiber* running_fiber();

}  // namespace gs::cuda_emulation
