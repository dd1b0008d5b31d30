// The scheduler: runs the blocks of a grid one after the other, the threads of a block as fibers.
// Under ThreadSanitizer each logical thread is a thread whose only orders are those that the
// executor announces.
#include "tests/cuda_emulation/executor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_emulation/options.h"

// The section of static shared memory, if there is one (see emulation.h).
extern "C" {
extern char __start_gs_cuda_shared[] __attribute__((weak));
extern char __stop_gs_cuda_shared[] __attribute__((weak));
}

namespace gs::cuda_emulation {

Coordinates coordinates;
Execution execution;

void* dynamic_shared_memory() { return execution.shared; }

namespace {

void enter(Thread* thread) {
  execution.current = thread;
  coordinates.thread = thread->index;
}

void run_thread(Thread* thread) {
  thread->fiber = running_fiber();
  enter(thread);
  enter_context(thread->fiber->context);
  order_after(&execution.grid_begin);
  (*execution.body)();
  order_before(&execution.grid_end);
  enter_context(execution.scheduler_context);
  leave_block(*thread);
}

// What every fiber does: threads that have not started, one after the other while none blocks. For
// ThreadSanitizer each gets its own stack, which would seem handed on without order otherwise.
void fiber_body() {
  begin_fiber();
  Block& block = execution.block;
  for (;;) {
    while (block.started < block.threads.size()) {
      run_thread(&block.threads[block.order[block.started++]]);
      if (kThreadSanitizer) break;
      // In random order another thread may go on first.
      if (options().order == Order::kRandom && block.ready_head < block.ready.size() &&
          (execution.random() & 1u) != 0)
        break;
    }
    (kThreadSanitizer ? execution.spent : execution.idle).push_back(running_fiber());
    leave_fiber();
  }
}

Fiber* idle_fiber() {
  std::vector<Fiber*>& idle = execution.idle;
  if (idle.empty()) return new_fiber(fiber_body);
  // Between blocks: other fibers for the threads of the next block, which would seem ordered
  // otherwise.
  if (options().between_blocks) std::swap(idle[execution.random() % idle.size()], idle.back());
  Fiber* const fiber = idle.back();
  idle.pop_back();
  return fiber;
}

Thread* next_ready() {
  Block& block = execution.block;
  if (options().order == Order::kDescending) {
    Thread* const thread = block.ready.back();
    block.ready.pop_back();
    return thread;
  }
  if (options().order == Order::kRandom) {
    const size_t pick = execution.random() % (block.ready.size() - block.ready_head);
    std::swap(block.ready[block.ready_head], block.ready[block.ready_head + pick]);
  }
  Thread* const thread = block.ready[block.ready_head++];
  if (block.ready_head == block.ready.size()) {
    block.ready.clear();
    block.ready_head = 0;
  }
  return thread;
}

// NaN in every floating-point format; not memset, which ThreadSanitizer would see.
void poison_unseen(void* memory, size_t bytes) {
  asm volatile("rep stosb" : "+D"(memory), "+c"(bytes) : "a"(0xff) : "memory");
}
size_t static_shared_bytes() {
  return static_cast<size_t>(__stop_gs_cuda_shared - __start_gs_cuda_shared);
}

void begin_block() {
  Block& block = execution.block;
  block.started = 0;
  block.live = static_cast<unsigned>(block.threads.size());
  block.ready.clear();
  block.ready_head = 0;
  for (Thread& thread : block.threads) thread.done = false;
  for (unsigned i = 0; i < block.warp_count; ++i) {
    block.warps[i].exited = 0;
    for (unsigned j = 0; j < block.warps[i].used; ++j)
      block.warps[i].groups[j].arrived = block.warps[i].groups[j].reading = 0;
  }
  if (options().order == Order::kRandom)
    std::shuffle(block.order.begin(), block.order.end(), execution.random);
  poison_unseen(__start_gs_cuda_shared, static_shared_bytes());
  poison_unseen(execution.shared, execution.shared_bytes);
  order_before(&execution.grid_begin);
}

[[noreturn]] void deadlock() {
  int shown = 0;
  for (const Thread& thread : execution.block.threads) {
    if (!thread.done && shown++ < 6)
      std::fprintf(stderr, "  thread %u waits in %s at %s:%d\n", thread.linear, thread.waits_in,
                   thread.waits_at.file, thread.waits_at.line);
  }
  const uint3 place = coordinates.block;
  stop("deadlock", "%s: block (%u,%u,%u) cannot go on", execution.kernel, place.x, place.y,
       place.z);
}

void run_block() {
  begin_block();
  Block& block = execution.block;
  for (;;) {
    const bool any_ready = block.ready_head < block.ready.size();
    const bool any_new = block.started < block.threads.size();
    if (!any_ready && !any_new) break;
    // Ascending: what can go on goes on first, so that the stacks of one warp at a time are in the
    // cache.
    const Order order = options().order;
    const bool prefer_new =
        order == Order::kDescending || (order == Order::kRandom && (execution.random() & 1u) != 0);
    if (any_new && (!any_ready || prefer_new)) {
      run_fiber(idle_fiber());
    } else {
      run_fiber(next_ready()->fiber);
    }
  }
  if (block.live != 0) deadlock();
  execution.idle.insert(execution.idle.end(), execution.spent.begin(), execution.spent.end());
  execution.spent.clear();
}

void make_threads(dim3 size) {
  Block& block = execution.block;
  const unsigned count = size.x * size.y * size.z;
  block.threads.clear();
  block.threads.resize(count);
  block.order.resize(count);
  block.warp_count = (count + 31) / 32;
  for (unsigned i = 0; i < block.warp_count; ++i) block.warps[i].lanes = 0;
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = block.threads[i];
    thread.linear = i;
    thread.lane = i % 32;
    thread.warp = i / 32;
    thread.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    block.warps[thread.warp].lanes |= 1u << thread.lane;
    block.order[i] = options().order == Order::kDescending ? count - 1 - i : i;
  }
  if (kThreadSanitizer && options().between_blocks) {
    while (fiber_count() < 2 * size_t{count}) execution.idle.push_back(new_fiber(fiber_body));
  }
}

// Aligned to 128 bytes, and closed to AddressSanitizer from the exact end of what was asked for;
// without it, what is written just beyond is seen at the end of the grid.
class DynamicSharedMemory {
 public:
  explicit DynamicSharedMemory(size_t bytes) : room_((bytes + 127) / 128 * 128 + 256) {
    execution.shared = std::aligned_alloc(128, room_);
    execution.shared_bytes = bytes;
    std::memset(guard(), kGuard, room_ - bytes);
    close_memory(guard(), room_ - bytes);
    if (options().between_blocks) ignore_races(execution.shared, room_);
  }
  ~DynamicSharedMemory() {
    open_memory(execution.shared, room_);
    const auto whole = [](unsigned char byte) { return byte == kGuard; };
    if (!std::all_of(guard(), guard() + (room_ - execution.shared_bytes), whole))
      stop("shared memory", "%s: wrote beyond its %zu bytes", execution.kernel,
           execution.shared_bytes);
    std::free(execution.shared);
    execution.shared = nullptr;
  }
  DynamicSharedMemory(const DynamicSharedMemory&) = delete;
  DynamicSharedMemory& operator=(const DynamicSharedMemory&) = delete;

 private:
  static constexpr unsigned char kGuard = 0xa5;
  unsigned char* guard() const {
    return static_cast<unsigned char*>(execution.shared) + execution.shared_bytes;
  }
  const size_t room_;
};

}  // namespace

void wait_here(const char* what, Place place) {
  Thread* const self = execution.current;
  self->waits_in = what;
  self->waits_at = place;
  leave_fiber();
  enter(self);
}

void run_grid(const char* kernel, dim3 blocks, dim3 threads, size_t shared_bytes,
              const std::function<void()>& thread) {
  if (execution.active) stop("launch", "%s: launched from a kernel", kernel);
  execution.active = true;
  execution.kernel = kernel;
  execution.body = &thread;
  execution.random.seed(options().seed);
  execution.scheduler_context = current_context();
  make_threads(threads);
  const DynamicSharedMemory shared(shared_bytes);
  if (options().between_blocks) ignore_races(__start_gs_cuda_shared, static_shared_bytes());
  coordinates.block_size = threads;
  coordinates.grid_size = blocks;
  const uint64_t count = uint64_t{blocks.x} * blocks.y * blocks.z;
  const uint64_t first = options().order == Order::kRandom ? execution.random() % count : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t block =
        options().order == Order::kDescending ? count - 1 - i : (first + i) % count;
    coordinates.block = {static_cast<unsigned>(block % blocks.x),
                         static_cast<unsigned>(block / blocks.x % blocks.y),
                         static_cast<unsigned>(block / blocks.x / blocks.y)};
    run_block();
    if (!options().between_blocks) order_after(&execution.grid_end);
  }
  order_after(&execution.grid_end);
  execution.active = false;
}

}  // namespace gs::cuda_emulation
