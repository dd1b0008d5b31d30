#pragma once

namespace gs {

// From this call on, the first SIGINT (Ctrl-C) or SIGTERM only makes interrupted() true, so that a
// loop can finish its step and save; a second one ends the process at once. Signals that were
// ignored before (nohup, shell jobs in the background) stay ignored.
void catch_interrupts();

bool interrupted() noexcept;

}  // namespace gs
