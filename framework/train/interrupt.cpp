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

}  // namespace

void catch_interrupts() {
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction old = {}, action = {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == SIG_IGN) continue;
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;  // a file being written is not disturbed
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

bool interrupted() noexcept { return interrupt_flag.load(std::memory_order_relaxed); }

}  // namespace gs
