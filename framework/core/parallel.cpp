#include "framework/core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "framework/core/error.h"

namespace gs {
namespace {

constexpr int kMaximumThreads = 1024;
// How often an idle thread looks for work before it sleeps, some 20 us: long enough for the next
// kernel of a step, short enough not to take a core from anybody else.
constexpr int kSpins = 1000;

thread_local bool inside = false;  // in a body: nested calls are not split

void pause() { __builtin_ia32_pause(); }

// Threads that take pieces of one loop at a time. The caller takes pieces, too, and waits only for
// those that somebody has begun: on a busy machine nobody waits for a thread that gets no core.
class Pool {
 public:
  void run(int pieces, const std::function<void(int)>& body) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock.owns_lock()) {
      for (int i = 0; i < pieces; ++i) body(i);
      return;
    }
    grow(pieces - 1);
    body_ = &body;
    done_.store(0, std::memory_order_relaxed);
    const uint64_t loop = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
    ticket_.store(loop << 32 | static_cast<uint64_t>(pieces) << 16, std::memory_order_release);
    ticket_.notify_all();
    work(loop);
    for (int spin = 0; done_.load(std::memory_order_acquire) != pieces; ++spin) {
      spin < kSpins ? pause() : static_cast<void>(sched_yield());
    }
  }

 private:
  // The ticket: number of the loop (32 bits), its pieces (16), the next one to take (16). Taking a
  // piece changes it as a whole, so a thread that comes late cannot take one of another loop.
  static uint64_t loop_of(uint64_t ticket) { return ticket >> 32; }
  static int pieces_of(uint64_t ticket) { return static_cast<int>(ticket >> 16 & 0xffff); }
  static int next_of(uint64_t ticket) { return static_cast<int>(ticket & 0xffff); }

  void work(uint64_t loop) {
    inside = true;
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while (loop_of(ticket) == (loop & 0xffffffff) && next_of(ticket) < pieces_of(ticket)) {
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      (*body_)(next_of(ticket));
      done_.fetch_add(1, std::memory_order_release);
      ticket = ticket_.load(std::memory_order_acquire);
    }
    inside = false;
  }

  void serve() {
    // Interrupts are for the main thread, which handles them on a stack of their own.
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
    uint64_t seen = 0;
    while (true) {
      uint64_t ticket = ticket_.load(std::memory_order_acquire);
      for (int spin = 0; loop_of(ticket) == seen && spin < kSpins; ++spin) {
        pause();
        ticket = ticket_.load(std::memory_order_acquire);
      }
      if (loop_of(ticket) == seen) {
        ticket_.wait(ticket, std::memory_order_acquire);
        continue;
      }
      seen = loop_of(ticket);
      work(seen);
    }
  }

  void grow(int helpers) {
    while (static_cast<int>(helpers_.size()) < helpers) {
      helpers_.emplace_back([this] { serve(); });
      helpers_.back().detach();
    }
  }

  std::mutex busy_;
  std::vector<std::thread> helpers_;
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> done_{0};
};

// Never destroyed: its threads sleep until the process ends.
Pool& pool() {
  static Pool& pool = *new Pool;
  return pool;
}

int default_threads() {
  for (const char* variable : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
    const char* text = std::getenv(variable);
    const int count = text == nullptr ? 0 : std::atoi(text);
    if (count >= 1) return std::min(count, kMaximumThreads);
  }
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) return 1;
  return std::clamp(CPU_COUNT(&processors), 1, kMaximumThreads);
}

int& thread_count() {
  static int count = [] {
    // The pool's threads do not survive a fork: the child must never wait for them.
    pthread_atfork(nullptr, nullptr, [] { thread_count() = 1; });
    return default_threads();
  }();
  return count;
}

}  // namespace

int threads() { return thread_count(); }

void set_threads(int count) {
  check(count >= 1 && count <= kMaximumThreads, "threads: 1 to {} are possible, got {}",
        kMaximumThreads + 0, count);
  thread_count() = count;
}

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t first, int64_t last)>& body) {
  if (begin >= end) return;
  const int64_t ranges = (end - begin + grain - 1) / std::max<int64_t>(1, grain);
  const int64_t pieces = std::min<int64_t>(threads(), ranges);
  if (pieces <= 1 || inside) {
    body(begin, end);
    return;
  }
  pool().run(static_cast<int>(pieces), [&](int i) {
    body(begin + (end - begin) * i / pieces, begin + (end - begin) * (i + 1) / pieces);
  });
}

}  // namespace gs
