#pragma once

#include <cstdint>

#include "framework/backend/backend.h"

namespace gs::backend {

inline constexpr int64_t kMostStoredBytes = 2048;

// Writes a few whole words of 4 bytes to a device's memory, in the order of its work and without
// waiting for it; `host` may be changed at once.
void store(Cpu, void* data, const void* host, int64_t bytes);
void store(Cuda, void* data, const void* host, int64_t bytes);

}  // namespace gs::backend
