#pragma once

#include <cstdint>
#include <memory>

#include "framework/backend/backend.h"

// Copies that a device makes by itself, while host and device go on. The CPU makes them at once.
namespace gs::backend {

// Memory of the host that a device copies from and to without the host's help.
std::shared_ptr<void> new_pinned_memory(Cpu, int64_t bytes);
std::shared_ptr<void> new_pinned_memory(Cuda, int64_t bytes);

// A point in the order of a device's work, reached when all before it is done. Null is reached.
using Mark = std::shared_ptr<void>;

// The point after all work that was asked for so far.
Mark mark(Cpu);
Mark mark(Cuda);
bool reached(Cpu, const Mark& mark);
bool reached(Cuda, const Mark& mark);
void wait_for(Cpu, const Mark& mark);  // the host does
void wait_for(Cuda, const Mark& mark);

// Copies pinned memory to the device's beside its work, but not before `after`. Work that is asked
// for later follows the copy only after follow().
Mark copy_beside(Cpu, void* data, const void* pinned, int64_t bytes, const Mark& after);
Mark copy_beside(Cuda, void* data, const void* pinned, int64_t bytes, const Mark& after);
void follow(Cpu, const Mark& mark);
void follow(Cuda, const Mark& mark);

// Copies within the device's memory, or to pinned memory, in the order of its work.
void copy_in_order(Cpu, void* to, const void* from, int64_t bytes);
void copy_in_order(Cuda, void* to, const void* from, int64_t bytes);

}  // namespace gs::backend
