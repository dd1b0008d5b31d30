// The executor of cusim: fibers, the scheduler of one block, barriers and warp collectives.
// Compile it without -fsanitize=thread: under ThreadSanitizer each logical CUDA thread is a TSan
// fiber of its own whose only ordering edges are those that this file announces.
#include "cusim_internal.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#if defined(CUSIM_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(CUSIM_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* addr);
void __tsan_release(void* addr);
void AnnotateBenignRaceSized(const char* f, int l, const volatile void* mem, size_t size,
                             const char* desc);
}
#endif
#if defined(CUSIM_SHARED_SECTION)
extern "C" {
extern char __start_cusim_shared[] __attribute__((weak));
extern char __stop_cusim_shared[] __attribute__((weak));
}
#endif

namespace cusim {

Ids ids;
Options options;

void report(const char* kind, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::fprintf(stderr, "cusim: %s: ", kind);
  std::vfprintf(stderr, format, list);
  std::fprintf(stderr, "\n");
  va_end(list);
  if (options.abort_on_error) std::abort();
  ++options.errors;
}

namespace {

constexpr size_t kGatherBytes = 32;  // Of one lane.

#if defined(__x86_64__)
extern "C" void cusim_switch(void** save, void* load);
asm(R"(
.text
.globl cusim_switch
.type cusim_switch,@function
cusim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rax
  jmp *%rax
.size cusim_switch,.-cusim_switch
)");
#else
#error "write cusim_switch for this processor, or use swapcontext"
#endif

#if defined(CUSIM_ASAN)
constexpr size_t kStack = 256 * 1024;
#else
constexpr size_t kStack = 64 * 1024;
#endif

struct Fiber {
  void* sp = nullptr;
#if defined(CUSIM_TSAN)
  void* context = __tsan_create_fiber(
      0);  // One logical thread a block: a stack isn't handed from one to another.
#endif
  char* stack = nullptr;
  void* fake = nullptr;  // ASan's fake stack.
};

}  // namespace

struct Thread {
  uint3 index{};
  unsigned linear = 0, lane = 0, warp = 0;
  Fiber* fiber = nullptr;
  At at{nullptr, 0};  // Where it waits.
  const char* waits = nullptr;
  bool done = false;
  std::vector<Copy> copies;  // cp.async not yet carried out.
  std::vector<size_t> commits;
};

namespace {

struct Group {  // No heap memory: TSan would count its allocation as a write.
  uint32_t mask = 0, arrived = 0, reading = 0;
  const char* what = nullptr;
  At at{nullptr, 0};
  unsigned waiters = 0;
  char order = 0;
  Thread* waiting[32];
  alignas(16) unsigned char table[32 * kGatherBytes];
};

struct Warp {
  Group groups[36];  // Up to 32 masks without common lanes, and those whose lanes still read.
  unsigned used = 0;
  uint32_t lanes = 0, exited = 0;
};
Warp warps[32];

struct Exec {
  // The grid.
  const std::function<void()>* body = nullptr;
  const char* kernel = "";
  // The block.
  std::vector<Thread> threads;
  unsigned warp_count = 0;
  std::vector<unsigned> order;  // In which threads start.
  size_t started = 0;
  unsigned live = 0;
  std::vector<Thread*> ready;
  size_t ready_head = 0;
  std::vector<Thread*> at_barrier;
  At barrier_at{nullptr, 0};
  unsigned barriers = 0;  // Passed so far.
  int reduce_count = 0, reduce_total = 0, reduce_result = 0;
  void* shared = nullptr;
  size_t shared_bytes = 0;
  // Fibers.
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> idle, spent;
  Fiber* running = nullptr;
  Thread* current = nullptr;
  void* main_sp = nullptr;
  void* main_fake = nullptr;
  const void* main_bottom = nullptr;
  size_t main_size = 0;
  bool active = false;
  std::mt19937 random{1};
  void* main_context = nullptr;  // TSan's.
  char grid_begin = 0, grid_end = 0, barrier_sync[2] = {},
       fence_sync = 0;  // Addresses for TSan's edges.
} x;

// TSan must not see what the executor itself does, malloc and memcpy included, as the work of
// logical threads.
struct Executor {
#if defined(CUSIM_TSAN)
  Executor() { __tsan_switch_to_fiber(x.main_context, 1); }
  ~Executor() { __tsan_switch_to_fiber(x.current->fiber->context, 1); }
#else
  Executor() {}
#endif
  Executor(const Executor&) = delete;
};
void tsan_acquire([[maybe_unused]] void* p) {
#if defined(CUSIM_TSAN)
  __tsan_acquire(p);
#endif
}
void tsan_release([[maybe_unused]] void* p) {
#if defined(CUSIM_TSAN)
  __tsan_release(p);
#endif
}

// Words that TSan doesn't see: no call of memcpy, which it would.
void raw_copy(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes / 4; ++i)
    static_cast<volatile uint32_t*>(to)[i] = static_cast<const uint32_t*>(from)[i];
}

void enter(Thread* t) {  // The running stack becomes t's.
  x.current = t;
  ids.thread = t->index;
}

void to_scheduler() {
  Fiber* self = x.running;
#if defined(CUSIM_ASAN)
  __sanitizer_start_switch_fiber(&self->fake, x.main_bottom, x.main_size);
#endif
  cusim_switch(&self->sp, x.main_sp);
#if defined(CUSIM_ASAN)
  __sanitizer_finish_switch_fiber(self->fake, &x.main_bottom, &x.main_size);
#endif
}

void to_fiber(Fiber* f) {
  x.running = f;
#if defined(CUSIM_ASAN)
  __sanitizer_start_switch_fiber(&x.main_fake, f->stack, kStack);
#endif
  cusim_switch(&x.main_sp, f->sp);
#if defined(CUSIM_ASAN)
  __sanitizer_finish_switch_fiber(x.main_fake, nullptr, nullptr);
#endif
  x.running = nullptr;
}

void release_barrier() {
  ++x.barriers;
  x.ready.insert(x.ready.end(), x.at_barrier.begin(), x.at_barrier.end());
  x.at_barrier.clear();
  x.reduce_result = x.reduce_total;
  x.reduce_count = x.reduce_total = 0;
  x.barrier_at = {nullptr, 0};
}

void wait_here(const char* what, At at) {
  Thread* self = x.current;
  self->waits = what;
  self->at = at;
  to_scheduler();
  enter(self);
  self->waits = nullptr;
}

void thread_exit(Thread* t) {
  t->done = true;
  if (!t->copies.empty())
    report("async copy", "%s: a thread ended with cp.async copies not waited for", x.kernel);
  --x.live;
  Warp& w = warps[t->warp];
  w.exited |= 1u << t->lane;
  for (unsigned j = 0; j < w.used; ++j) {
    const Group& g = w.groups[j];
    if (g.arrived != 0 && (g.mask & ~g.arrived) >> t->lane & 1u) {
      report("divergence", "%s: lane %u ended while %s at %s:%d waits for it", x.kernel, t->lane,
             g.what, g.at.file, g.at.line);
    }
  }
  if (!x.at_barrier.empty()) {
    report("divergence", "%s: thread %u ended while others wait in __syncthreads at %s:%d",
           x.kernel, t->linear, x.barrier_at.file, x.barrier_at.line);
    if (x.at_barrier.size() == x.live) release_barrier();  // As the hardware does.
  }
}

void fiber_main() {
#if defined(CUSIM_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &x.main_bottom, &x.main_size);
#endif
  for (;;) {
    while (x.started < x.threads.size()) {
      Thread* t = &x.threads[x.order[x.started++]];
      t->fiber = x.running;
      enter(t);
#if defined(CUSIM_TSAN)
      __tsan_switch_to_fiber(x.running->context, 1);
      __tsan_acquire(&x.grid_begin);
      (*x.body)();
      __tsan_release(&x.grid_end);
      __tsan_switch_to_fiber(x.main_context, 1);
      thread_exit(t);
      break;
#endif
      (*x.body)();
      thread_exit(t);
      // Under a random schedule another thread may go on first.
      if (options.schedule == Schedule::kRandom && x.ready_head < x.ready.size() &&
          (x.random() & 1u))
        break;
    }
#if defined(CUSIM_TSAN)
    x.spent.push_back(
        x.running);  // Not for another thread of this block: TSan would see one thread.
#else
    x.idle.push_back(x.running);
#endif
    to_scheduler();
  }
}

Fiber* new_fiber();
Fiber* fresh_fiber() {
  if (!x.idle.empty()) {
    size_t pick = x.idle.size() - 1;
    if (options.between_blocks)
      pick =
          x.random() % x.idle.size();  // Another TSan fiber for the same thread of the next block.
    Fiber* f = x.idle[pick];
    x.idle[pick] = x.idle.back();
    x.idle.pop_back();
    return f;
  }
  return new_fiber();
}

Fiber* new_fiber() {
  auto f = std::make_unique<Fiber>();
  char* base = static_cast<char*>(
      mmap(nullptr, kStack + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (base == MAP_FAILED) std::abort();
  mprotect(base, 4096, PROT_NONE);
  f->stack = base + 4096;
  // Each stack starts at another offset: equal offsets would make all of them meet in the same
  // cache sets.
  void** top = reinterpret_cast<void**>(f->stack + kStack - x.all.size() % 64 * 256);
  *--top =
      nullptr;  // A return address that is never used; keeps the stack aligned as after a call.
  *--top = reinterpret_cast<void*>(&fiber_main);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  f->sp = top;
  x.all.push_back(std::move(f));
  return x.all.back().get();
}

void poison_shared() {
#if defined(CUSIM_SHARED_SECTION)
  if (__start_cusim_shared)
    std::memset(__start_cusim_shared, 0xff,
                static_cast<size_t>(__stop_cusim_shared - __start_cusim_shared));
#endif
  std::memset(x.shared, 0xff, x.shared_bytes);
}

void deadlock() {
  int shown = 0;
  for (Thread& t : x.threads) {
    if (!t.done && shown++ < 6) {
      std::fprintf(stderr, "  thread %u waits in %s at %s:%d\n", t.linear, t.waits, t.at.file,
                   t.at.line);
    }
  }
  report("deadlock", "%s: block (%u,%u,%u) can't go on", x.kernel, ids.block.x, ids.block.y,
         ids.block.z);
  std::abort();
}

void run_block() {
  x.started = 0;
  x.live = static_cast<unsigned>(x.threads.size());
  x.ready.clear();
  x.ready_head = 0;
  for (Thread& t : x.threads) {
    t.done = false;
  }
  for (unsigned i = 0; i < x.warp_count; ++i) {
    warps[i].exited = 0;
    for (unsigned j = 0; j < warps[i].used; ++j)
      warps[i].groups[j].arrived = warps[i].groups[j].reading = 0;
  }
  if (options.schedule == Schedule::kRandom) std::shuffle(x.order.begin(), x.order.end(), x.random);
  poison_shared();
  tsan_release(&x.grid_begin);
  for (;;) {
    bool any_ready = x.ready_head < x.ready.size();
    bool any_new = x.started < x.threads.size();
    // Ascending: what can go on goes on first, so that one warp at a time has its stacks in the
    // cache.
    bool start_new = options.schedule == Schedule::kDescending ||
                     (options.schedule == Schedule::kRandom && (x.random() & 1u));
    if (any_new && (!any_ready || start_new)) {
      to_fiber(fresh_fiber());
    } else if (any_ready) {
      size_t pick = x.ready_head;
      if (options.schedule == Schedule::kDescending) pick = x.ready.size() - 1;
      if (options.schedule == Schedule::kRandom)
        pick += x.random() % (x.ready.size() - x.ready_head);
      Thread* t = x.ready[pick];
      if (options.schedule == Schedule::kDescending) {
        x.ready.pop_back();
      } else {
        x.ready[pick] = x.ready[x.ready_head++];
        if (x.ready_head == x.ready.size()) {
          x.ready.clear();
          x.ready_head = 0;
        }
      }
      to_fiber(t->fiber);
    } else {
      break;
    }
  }
  if (x.live != 0) deadlock();
  x.idle.insert(x.idle.end(), x.spent.begin(), x.spent.end());
  x.spent.clear();
}

Group* join(uint32_t mask, const char* what, At at) {
  Thread* self = x.current;
  Warp& w = warps[self->warp];
  if (!(mask >> self->lane & 1u))
    report("mask", "%s: %s at %s:%d: lane %u isn't in its own mask %08x", x.kernel, what, at.file,
           at.line, self->lane, mask);
  if (mask & ~w.lanes)
    report("mask", "%s: %s at %s:%d: mask %08x names lanes that don't exist", x.kernel, what,
           at.file, at.line, mask);
  if (mask & w.exited)
    report("divergence", "%s: %s at %s:%d: mask %08x names lanes that have ended (%08x)", x.kernel,
           what, at.file, at.line, mask, w.exited);
  Group* g = nullptr;
  Group* free = nullptr;
  for (Group* c = w.groups; c != w.groups + w.used; ++c) {
    if (c->arrived == 0 && c->reading == 0) {
      free = c;
      continue;
    }
    if (c->arrived != 0 && c->mask == mask) {
      g = c;
      continue;
    }
    if (c->arrived != 0 && (c->mask & mask))
      report("mask", "%s: %s at %s:%d with mask %08x overlaps %s at %s:%d with mask %08x", x.kernel,
             what, at.file, at.line, mask, c->what, c->at.file, c->at.line, c->mask);
  }
  if (!g) {
    if (!free) free = &w.groups[w.used++];
    g = free;
    g->mask = mask;
    g->what = what;
    g->at = at;
  } else if (g->at.line != at.line ||
             (g->at.file != at.file && std::strcmp(g->at.file, at.file) != 0)) {
    report("divergence", "%s: lanes of mask %08x meet in %s at %s:%d and %s at %s:%d", x.kernel,
           mask, what, at.file, at.line, g->what, g->at.file, g->at.line);
  }
  return g;
}

void meet(Group* g, const char* what, At at) {
  Thread* self = x.current;
  g->arrived |= 1u << self->lane;
  if (g->arrived == g->mask) {
    x.ready.insert(x.ready.end(), g->waiting, g->waiting + g->waiters);
    g->waiters = 0;
    g->arrived = 0;
    g->reading = g->mask;
  } else {
    g->waiting[g->waiters++] = self;
    wait_here(what, at);
  }
  g->reading &= ~(1u << self->lane);
}

}  // namespace

void block_barrier(At at) { block_barrier_reduce(at, 0, 0); }

int block_barrier_reduce(At at, int value, int op) {
  Thread* self = x.current;
  // Two addresses by turns: who goes on to the next barrier must not seem ordered before who has
  // yet to leave this one.
  char* order = &x.barrier_sync[x.barriers % 2];
  tsan_release(order);
  {
    Executor executor;
    if (x.barrier_at.file &&
        (x.barrier_at.line != at.line ||
         (x.barrier_at.file != at.file && std::strcmp(x.barrier_at.file, at.file) != 0))) {
      report("divergence", "%s: threads of one block meet in __syncthreads at %s:%d and at %s:%d",
             x.kernel, at.file, at.line, x.barrier_at.file, x.barrier_at.line);
    }
    if (!x.barrier_at.file && x.live != x.threads.size()) {
      report("divergence", "%s: __syncthreads at %s:%d after %zu threads of the block have ended",
             x.kernel, at.file, at.line, x.threads.size() - x.live);
    }
    x.barrier_at = at;
    ++x.reduce_count;
    if (op == 0) x.reduce_total += value;
    if (op == 1) x.reduce_total = (x.reduce_count == 1 ? 1 : x.reduce_total) & value;
    if (op == 2) x.reduce_total |= value;
    if (x.at_barrier.size() + 1 == x.live) {
      release_barrier();
    } else {
      x.at_barrier.push_back(self);
      wait_here("__syncthreads", at);
    }
  }
  tsan_acquire(order);
  return x.reduce_result;
}

void warp_barrier(uint32_t mask, At at) {
  Group* g;
  {
    Executor executor;
    g = join(mask, "__syncwarp", at);
  }
  tsan_release(&g->order);
  {
    Executor executor;
    meet(g, "__syncwarp", at);
  }
  tsan_acquire(&g->order);
}

void warp_gather(uint32_t mask, const void* value, size_t bytes, void* all, At at) {
  Executor executor;
  Group* g = join(mask, "a warp collective", at);
  raw_copy(g->table + x.current->lane * bytes, value, bytes);
  meet(g, "a warp collective", at);
  raw_copy(all, g->table, 32 * bytes);
}

uint64_t warp_shuffle(uint32_t mask, uint64_t bits, Shfl mode, int arg, int width, At at) {
  Executor executor;
  Group* g = join(mask, "a shuffle", at);
  int lane = static_cast<int>(x.current->lane);
  uint64_t* table = reinterpret_cast<uint64_t*>(g->table);
  table[lane] = bits;
  int first = lane & ~(width - 1);
  int src = lane;
  switch (mode) {
    case Shfl::kIdx:
      src = first + (arg & (width - 1));
      break;
    case Shfl::kUp:
      src = lane - arg < first ? lane : lane - arg;
      break;
    case Shfl::kDown:
      src = lane + arg >= first + width ? lane : lane + arg;
      break;
    case Shfl::kXor:
      src = (lane ^ arg) >= first + width ? lane : lane ^ arg;
      break;
  }
  if (!(mask >> src & 1u))
    report("mask", "%s: shuffle at %s:%d: lane %d reads lane %d, which isn't in mask %08x",
           x.kernel, at.file, at.line, lane, src, mask);
  // The last lane to arrive goes on at once: it reads, and leaves the table to the others until
  // `reading` is empty.
  meet(g, "a shuffle", at);
  return table[src];
}

uint32_t warp_ballot(uint32_t mask, bool predicate, At at) {
  Executor executor;
  Group* g = join(mask, "a vote", at);
  g->table[x.current->lane] = predicate;
  meet(g, "a vote", at);
  uint32_t r = 0;
  for (unsigned i = 0; i < 32; ++i) r |= (mask >> i & 1u) ? uint32_t{g->table[i]} << i : 0u;
  return r;
}

uint32_t lane_id() { return x.current->lane; }
uint32_t warp_active() { return warps[x.current->warp].lanes & ~warps[x.current->warp].exited; }

void fence() {
  tsan_acquire(&x.fence_sync);
  tsan_release(&x.fence_sync);
}

void* dynamic_shared() { return x.shared; }
size_t dynamic_shared_bytes() { return x.shared_bytes; }

// Between the start of a copy and the wait for it, its destination holds nobody knows what: a
// reader that hasn't finished when the copy starts gets NaN, as does one that doesn't wait; TSan
// sees a write at both ends.
void async_copy(void* dst, const void* src, size_t bytes, size_t src_bytes) {
  std::memset(dst, 0xff, bytes);
  Executor executor;
  x.current->copies.push_back({dst, src, bytes, src_bytes});
}
void async_commit() {
  Executor executor;
  x.current->commits.push_back(x.current->copies.size());
}
void async_wait(int pending) {
  Thread& t = *x.current;
  size_t groups = t.commits.size();
  if (groups <= static_cast<size_t>(pending)) return;
  size_t upto = t.commits[groups - 1 - static_cast<size_t>(pending)];
  for (size_t i = 0; i < upto; ++i) {
    std::memset(t.copies[i].dst, 0, t.copies[i].bytes);
    std::memcpy(t.copies[i].dst, t.copies[i].src, t.copies[i].src_bytes);
  }
  Executor executor;
  t.copies.erase(t.copies.begin(), t.copies.begin() + static_cast<long>(upto));
  t.commits.erase(t.commits.begin(), t.commits.end() - pending);
  for (size_t& c : t.commits) c -= upto;
}

void run_grid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
              const std::function<void()>& body) {
  if (x.active) {
    report("nesting", "a kernel was launched from a kernel");
    return;
  }
  x.active = true;
  x.body = &body;
  x.kernel = kernel;
  x.random.seed(options.seed);
  unsigned n = block.x * block.y * block.z;
  x.threads.clear();
  x.threads.resize(n);
  x.warp_count = (n + 31) / 32;
  for (unsigned i = 0; i < x.warp_count; ++i) warps[i].lanes = 0;
  x.order.resize(n);
  for (unsigned i = 0; i < n; ++i) {
    Thread& t = x.threads[i];
    t.linear = i;
    t.lane = i % 32;
    t.warp = i / 32;
    t.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    warps[t.warp].lanes |= 1u << t.lane;
    x.order[i] = options.schedule == Schedule::kDescending ? n - 1 - i : i;
  }
#if defined(CUSIM_TSAN)
  x.main_context = __tsan_get_current_fiber();
  while (options.between_blocks && x.all.size() < 2 * size_t{n}) x.idle.push_back(new_fiber());
#endif
  // The dynamic shared memory is one allocation of exactly the size of the launch, so that ASan
  // guards its end.
  x.shared_bytes = shared_bytes;
  x.shared = std::aligned_alloc(128, (shared_bytes + 127) / 128 * 128 + 128);
#if defined(CUSIM_ASAN)
  __asan_poison_memory_region(static_cast<char*>(x.shared) + shared_bytes,
                              (shared_bytes + 127) / 128 * 128 + 128 - shared_bytes);
#endif
#if defined(CUSIM_TSAN)
  if (options.between_blocks) {
    AnnotateBenignRaceSized("cusim", 0, x.shared, shared_bytes, "shared memory");
#if defined(CUSIM_SHARED_SECTION)
    if (__start_cusim_shared)
      AnnotateBenignRaceSized("cusim", 0, __start_cusim_shared,
                              static_cast<size_t>(__stop_cusim_shared - __start_cusim_shared),
                              "shared memory");
#endif
  }
#endif
  ids.block_dim = block;
  ids.grid_dim = grid;
  unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned k = 0; k < blocks; ++k) {
    unsigned b = options.schedule == Schedule::kDescending ? blocks - 1 - k : k;
    ids.block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    run_block();
#if defined(CUSIM_TSAN)
    if (!options.between_blocks)
      __tsan_acquire(&x.grid_end);  // Blocks ordered: only races within a block show.
#endif
  }
#if defined(CUSIM_TSAN)
  __tsan_acquire(&x.grid_end);
#endif
#if defined(CUSIM_ASAN)
  __asan_unpoison_memory_region(x.shared, (shared_bytes + 127) / 128 * 128 + 128);
#endif
  std::free(x.shared);
  x.shared = nullptr;
  x.active = false;
}

bool in_kernel() { return x.active; }

}  // namespace cusim
