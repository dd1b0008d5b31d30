#include "framework/backend/memory.h"

namespace gs {

Memory::Memory(Device device, int64_t bytes)
    : device_(device),
      bytes_(bytes),
      data_(on_device(device, [&](auto on) { return backend::allocate(on, bytes); })) {}

Memory::~Memory() {
  on_device(device_, [&](auto on) { backend::deallocate(on, data_, bytes_); });
}

MemoryFigures memory_figures(Device device) {
  return on_device(device, [](auto on) { return backend::memory_figures(on); });
}

void release_cached_memory(Device device) {
  on_device(device, [](auto on) { backend::release_cached_memory(on); });
}

void reset_peak_memory(Device device) {
  on_device(device, [](auto on) { backend::reset_peak_memory(on); });
}

}  // namespace gs
