#pragma once

#include <memory>

#include "framework/backend/backend.h"

namespace gs::backend {

// Memory of a device that is kept apart while its handle lives: while a pool is in use in a thread,
// arrays made there get their memory from it and give it back to it, whenever they are freed. Null
// on the CPU, which has none.
struct MemoryPool;
std::shared_ptr<MemoryPool> new_memory_pool(Cpu);
std::shared_ptr<MemoryPool> new_memory_pool(Cuda);

// Makes a pool, or null for the common memory, the one in use in this thread; returns the one
// before.
MemoryPool* use_memory_pool(Cpu, MemoryPool* pool);
MemoryPool* use_memory_pool(Cuda, MemoryPool* pool);

}  // namespace gs::backend
