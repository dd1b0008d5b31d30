#include "framework/train/interrupt.h"

#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "framework/core/error.h"

namespace gs {
namespace {

std::atomic<bool> interrupt_flag = false, is_caught = false, is_watched = false;
std::atomic<int> last_number = 0;
std::atomic<int64_t> first_arrival = 0;  // milliseconds
sem_t arrived;                           // what a handler may post
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
                  std::atomic<int64_t>::is_always_lock_free,
              "signal handlers must not lock");

int64_t milliseconds_now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

void handle(int number) {
  // timeout(1) sends its signal to the program and to the group, which is the program again: what
  // follows so soon is no second wish.
  constexpr int64_t kSameWish = 200;  // milliseconds
  const int saved = errno;
  const int64_t now = milliseconds_now();
  const bool first = !interrupt_flag.exchange(true);
  if (first) first_arrival = now;
  if (first ? is_caught.load() : now - first_arrival < kSameWish) {
    errno = saved;
    return;
  }
  if (first && is_watched) {
    last_number = number;
    sem_post(&arrived);
  } else {
    signal(number, SIG_DFL);
    raise(number);  // arrives when this handler returns
  }
  errno = saved;
}

void watch(const std::function<void()>& body) {
  sigset_t interrupts;  // are for the main thread
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  sigaddset(&interrupts, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
  while (sem_wait(&arrived) != 0) continue;
  body();
  signal(last_number, SIG_DFL);
  kill(getpid(), last_number);
}

// Kernels of oneDNN 2.6 keep data where the stack pointer points, on the heap: a handler on top of
// that destroys it. Signals go to the main thread, which must call this.
void use_alternate_stack() {
  stack_t present = {};
  if (sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) return;
  alignas(64) static char memory[1 << 16];
  stack_t alternate = {};
  alternate.ss_sp = memory;
  alternate.ss_size = sizeof memory;
  sigaltstack(&alternate, nullptr);
}

void install_handlers() {
  use_alternate_stack();
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction old = {}, action = {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART | SA_ONSTACK;  // a file being written is not disturbed
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace

void catch_interrupts() {
  is_caught = true;
  install_handlers();
}

void release_interrupts() { is_caught = false; }

bool interrupted() noexcept { return interrupt_flag.load(std::memory_order_relaxed); }

void before_interrupt_ends(std::function<void()> body) {
  check(!is_watched, "before_interrupt_ends: a body is set already, and there can be one only");
  sem_init(&arrived, 0, 0);
  std::thread([body = std::move(body)] { watch(body); }).detach();
  is_watched = true;
  install_handlers();
}

}  // namespace gs
