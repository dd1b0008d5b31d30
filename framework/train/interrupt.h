#pragma once

#include <functional>

namespace gs {

// From this call on, the first SIGINT (Ctrl-C) or SIGTERM only makes interrupted() true, so that a
// loop can finish its step and save; a second one, a fifth of a second later or more, ends the
// process at once. Signals that were ignored before (nohup, shell jobs in the background) stay
// ignored.
void catch_interrupts();

bool interrupted() noexcept;

// Undoes catch_interrupts(): where nothing is left to save, an interrupt may end the process.
void release_interrupts();

// Has `body` called, in a thread of its own, before an interrupt that is not caught ends the
// process. It must not throw; a second interrupt does not wait for it. To be called once at most.
void before_interrupt_ends(std::function<void()> body);

}  // namespace gs
