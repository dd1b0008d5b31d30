#include "framework/train/interrupt.h"

#include <signal.h>

#include <atomic>
#include <cerrno>

namespace gs {
namespace {

std::atomic<bool> interrupt_flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers must not lock");

void handle(int number) {
  if (!interrupt_flag.exchange(true)) return;
  const int saved = errno;
  signal(number, SIG_DFL);
  raise(number);  // arrives when this handler returns
  errno = saved;
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

}  // namespace

void catch_interrupts() {
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

bool interrupted() noexcept { return interrupt_flag.load(std::memory_order_relaxed); }

}  // namespace gs
