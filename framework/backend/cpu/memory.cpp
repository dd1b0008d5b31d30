#include "framework/backend/memory.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "framework/backend/cpu/arena.h"
#include "framework/backend/instruction_set.h"
#include "framework/backend/memory_pool.h"

namespace gs::backend {
namespace {

// Blocks from this size on are cut from the arena.
constexpr int64_t kLarge = int64_t{1} << 16;

bool is_large(int64_t bytes) { return bytes >= kLarge; }

// Four sizes to each power of two below kLarge: at most a fifth of a block is lost.
int64_t block_bytes(int64_t bytes) {
  const int64_t size = std::max<int64_t>(bytes, Arena::kAlignment);
  const int64_t step =
      is_large(bytes)
          ? Arena::kAlignment
          : std::max<int64_t>(
                Arena::kAlignment,
                static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size - 1)) / 4));
  return (size + step - 1) / step * step;
}

class Cache {
 public:
  // Null where the system has no more memory.
  void* take(int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    void* data = is_large(bytes) ? arena_.take(size) : take_small(size);
    if (data == nullptr) return nullptr;
    live_ += size;
    peak_ = std::max(peak_, live_);
    return data;
  }

  void put(void* data, int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    live_ -= size;
    if (is_large(bytes)) return arena_.put(data, size);
    small_bytes_ += size;
    small_[size].push_back(data);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : small_) {
      for (void* data : blocks) {
        ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(size));
        std::free(data);
      }
    }
    small_.clear();
    small_bytes_ = 0;
    arena_.release();
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = live_;
  }

  MemoryFigures figures() {
    const std::lock_guard lock(mutex_);
    return {live_, small_bytes_ + arena_.free_bytes(), peak_};
  }

 private:
  void* take_small(int64_t size) {
    std::vector<void*>& blocks = small_[size];
    if (blocks.empty()) return std::aligned_alloc(Arena::kAlignment, static_cast<size_t>(size));
    void* const data = blocks.back();
    blocks.pop_back();
    small_bytes_ -= size;
    return data;
  }

  std::mutex mutex_;
  Arena arena_;
  std::map<int64_t, std::vector<void*>> small_;  // free blocks by size
  int64_t live_ = 0, peak_ = 0, small_bytes_ = 0;
};

// Never destroyed: arrays with static lifetime may outlive any other static object.
Cache& cache() {
  static Cache& cache = *new Cache;
  return cache;
}

}  // namespace

void* allocate(Cpu, int64_t bytes) {
  instruction_set(Cpu{});  // whatever computes on the array is chosen by now
  if (bytes == 0) return nullptr;
  check(bytes <= INT64_MAX / 2, "memory: cannot allocate {} bytes; use smaller arrays", bytes);
  void* data = cache().take(bytes);
  if (data == nullptr) {
    cache().release();
    data = cache().take(bytes);
  }
  check(data != nullptr,
        "memory: cannot allocate {} bytes, {} are in use; use a smaller batch or model", bytes,
        cache().figures().live);
  ASAN_POISON_MEMORY_REGION(data, static_cast<size_t>(block_bytes(bytes)));
  ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(bytes));
  return data;
}

void deallocate(Cpu, void* data, int64_t bytes) {
  if (data == nullptr) return;
  ASAN_POISON_MEMORY_REGION(data, static_cast<size_t>(block_bytes(bytes)));
  cache().put(data, bytes);
}

MemoryFigures memory_figures(Cpu) { return cache().figures(); }
void release_cached_memory(Cpu) { cache().release(); }
void reset_peak_memory(Cpu) { cache().reset_peak(); }

std::shared_ptr<MemoryPool> new_memory_pool(Cpu) { return nullptr; }
MemoryPool* use_memory_pool(Cpu, MemoryPool*) { return nullptr; }

void copy_from_host(Cpu, void* data, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(data, host, static_cast<size_t>(bytes));
}

void copy_to_host(Cpu, void* host, const void* data, int64_t bytes) {
  if (bytes > 0) std::memcpy(host, data, static_cast<size_t>(bytes));
}

}  // namespace gs::backend
