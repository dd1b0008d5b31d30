#include "tests/cuda_emulation/fibers.h"

#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/sanitizers.h"

// Saves the registers that a function must keep and the stack pointer, then goes on with another
// stack. Twenty times as fast as swapcontext, which asks the system.
#if !defined(__x86_64__)
#error "write gs_cuda_switch_stacks for this processor, or use swapcontext"
#endif
extern "C" void gs_cuda_switch_stacks(void** save, void* load);
asm(R"(
.text
.globl gs_cuda_switch_stacks
.type gs_cuda_switch_stacks,@function
gs_cuda_switch_stacks:
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
.size gs_cuda_switch_stacks,.-gs_cuda_switch_stacks
)");

namespace gs::cuda_emulation {
namespace {

constexpr size_t kStackBytes = (kAddressSanitizer ? 256 : 64) * 1024;
constexpr size_t kPage = 4096;

struct Stacks {
  std::vector<std::unique_ptr<Fiber>> all;
  Fiber* running = nullptr;
  // The stack of the scheduler, which runs the fibers.
  void* stack_pointer = nullptr;
  void* frames = nullptr;
  const void* bottom = nullptr;
  size_t bytes = 0;
};
Stacks stacks;

}  // namespace

Fiber* new_fiber(void (*body)()) {
  auto fiber = std::make_unique<Fiber>();
  void* const memory = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) stop("memory", "no memory for the stack of a thread");
  mprotect(memory, kPage, PROT_NONE);  // an overflow ends here
  fiber->stack = static_cast<char*>(memory) + kPage;
  fiber->context = new_context();
  // Each stack starts at another offset: equal ones would meet in the same sets of the cache.
  void** top = reinterpret_cast<void**>(fiber->stack + kStackBytes - stacks.all.size() % 64 * 256);
  *--top = nullptr;  // a return address never used, for the alignment of a call
  *--top = reinterpret_cast<void*>(body);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber->stack_pointer = top;
  stacks.all.push_back(std::move(fiber));
  return stacks.all.back().get();
}

size_t fiber_count() { return stacks.all.size(); }
Fiber* running_fiber() { return stacks.running; }

void run_fiber(Fiber* fiber) {
  stacks.running = fiber;
  before_switch(&stacks.frames, fiber->stack, kStackBytes);
  gs_cuda_switch_stacks(&stacks.stack_pointer, fiber->stack_pointer);
  after_switch(stacks.frames, nullptr, nullptr);
  stacks.running = nullptr;
}

void leave_fiber() {
  Fiber* const self = stacks.running;
  before_switch(&self->frames, stacks.bottom, stacks.bytes);
  gs_cuda_switch_stacks(&self->stack_pointer, stacks.stack_pointer);
  after_switch(self->frames, &stacks.bottom, &stacks.bytes);
}

void begin_fiber() { after_switch(nullptr, &stacks.bottom, &stacks.bytes); }

}  // namespace gs::cuda_emulation
