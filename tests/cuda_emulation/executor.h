// What the parts of the executor share: the state of the one grid that runs.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <vector>

#include "tests/cuda_emulation/emulation.h"
#include "tests/cuda_emulation/fibers.h"
#include "tests/cuda_emulation/sanitizers.h"

namespace gs::cuda_emulation {

// Runs all threads of the grid to their ends. `kernel` is a name for messages.
void run_grid(const char* kernel, dim3 blocks, dim3 threads, size_t shared_bytes,
              const std::function<void()>& thread);

struct AsyncCopy {
  void* to;
  const void* from;
  size_t bytes, source_bytes;
};

struct Thread {
  uint3 index{};
  unsigned linear = 0, lane = 0, warp = 0;
  Fiber* fiber = nullptr;
  const char* waits_in = nullptr;
  Place waits_at;
  bool done = false;
  std::vector<AsyncCopy> copies;  // not yet carried out
  std::vector<size_t> commits;    // how many of them each group ends at
};

// Lanes of a warp that meet in a collective. No memory from the heap: ThreadSanitizer would count
// its allocation as a write.
struct LaneGroup {
  uint32_t mask = 0, arrived = 0, reading = 0;
  const char* what = nullptr;
  Place place;
  unsigned waiters = 0;
  char order = 0;  // an address for ThreadSanitizer
  Thread* waiting[32];
  alignas(16) unsigned char table[32 * 32];  // 32 bytes a lane
};

struct Warp {
  LaneGroup groups[36];  // up to 32 masks without common lanes, and those whose lanes still read
  unsigned used = 0;
  uint32_t lanes = 0, exited = 0;
};

struct Block {
  std::vector<Thread> threads;
  Warp warps[32];
  unsigned warp_count = 0;
  std::vector<unsigned> order;  // in which threads start
  size_t started = 0;
  unsigned live = 0;
  std::vector<Thread*> ready;
  size_t ready_head = 0;
  // The barrier.
  std::vector<Thread*> at_barrier;
  Place barrier_place;
  unsigned barriers = 0;                 // passed so far
  bool any = false, any_passed = false;  // of the votes of this barrier and of the last
};

struct Execution {
  const char* kernel = "";
  const std::function<void()>* body = nullptr;
  Block block;
  Thread* current = nullptr;
  void* shared = nullptr;
  size_t shared_bytes = 0;
  std::vector<Fiber*> idle, spent;
  bool active = false;
  std::mt19937 random;
  void* scheduler_context = nullptr;
  // Addresses for ThreadSanitizer's orders.
  char grid_begin = 0, grid_end = 0, barrier_orders[2] = {};
};
extern Execution execution;

// While it lives ThreadSanitizer does not take what happens, malloc and memcpy included, for the
// work of the logical thread.
class AsScheduler {
 public:
  AsScheduler() { enter_context(execution.scheduler_context); }
  ~AsScheduler() { enter_context(execution.current->fiber->context); }
  AsScheduler(const AsScheduler&) = delete;
  AsScheduler& operator=(const AsScheduler&) = delete;
};

// Lets others run until somebody makes this thread ready again.
void wait_here(const char* what, Place place);
// Lets those at the barrier go on.
void release_barrier();
// A thread ends: complains if others wait for it.
void leave_block(Thread& thread);

}  // namespace gs::cuda_emulation
