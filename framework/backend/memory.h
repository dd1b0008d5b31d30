#pragma once

#include <cstdint>

#include "framework/backend/backend.h"

namespace gs {

// Bytes that arrays hold now, bytes kept for reuse, and the most ever held at once.
struct MemoryFigures {
  int64_t live = 0, cached = 0, peak = 0;
};
MemoryFigures memory_figures(Device device = Device::cpu());

// Gives the cached blocks back to the system.
void release_cached_memory(Device device = Device::cpu());

// Starts the peak anew from what is live.
void reset_peak_memory(Device device = Device::cpu());

// A block of a device's memory, aligned to 64 bytes, not initialised. Blocks come from a cache of
// freed ones, since touching fresh pages costs more than most kernels that use them.
class Memory {
 public:
  Memory(Device device, int64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* data() const { return data_; }
  Device device() const { return device_; }
  int64_t bytes() const { return bytes_; }

 private:
  Device device_;
  int64_t bytes_;
  void* data_;
};

namespace backend {

void* allocate(Cpu, int64_t bytes);
void deallocate(Cpu, void* data, int64_t bytes);
MemoryFigures memory_figures(Cpu);
void release_cached_memory(Cpu);
void reset_peak_memory(Cpu);

void* allocate(Cuda, int64_t bytes);
void deallocate(Cuda, void* data, int64_t bytes);
MemoryFigures memory_figures(Cuda);
void release_cached_memory(Cuda);
void reset_peak_memory(Cuda);

// Copies between a device's memory and the host's; done when it returns.
void copy_from_host(Cpu, void* data, const void* host, int64_t bytes);
void copy_from_host(Cuda, void* data, const void* host, int64_t bytes);
void copy_to_host(Cpu, void* host, const void* data, int64_t bytes);
void copy_to_host(Cuda, void* host, const void* data, int64_t bytes);

}  // namespace backend
}  // namespace gs
