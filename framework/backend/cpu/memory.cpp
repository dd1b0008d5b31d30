#include "framework/backend/memory.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "framework/backend/instruction_set.h"

namespace gs::backend {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;

// Four sizes to each power of two: at most a fifth of a block is lost, and similar batches share
// blocks.
int64_t block_bytes(int64_t bytes) {
  const int64_t size = std::max<int64_t>(bytes, 64);
  const int64_t step = std::max<int64_t>(
      64, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size - 1)) / 4));
  return (size + step - 1) / step * step;
}

class Cache {
 public:
  void* take(int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    figures_.live += size;
    figures_.peak = std::max(figures_.peak, figures_.live);
    std::vector<void*>& blocks = free_[size];
    if (blocks.empty()) return nullptr;
    void* data = blocks.back();
    blocks.pop_back();
    figures_.cached -= size;
    return data;
  }

  void put(void* data, int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    figures_.live -= size;
    figures_.cached += size;
    free_[size].push_back(data);
  }

  void undo_take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    figures_.live -= block_bytes(bytes);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* data : blocks) {
        ASAN_UNPOISON_MEMORY_REGION(data, static_cast<size_t>(size));
        std::free(data);
      }
    }
    free_.clear();
    figures_.cached = 0;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    figures_.peak = figures_.live;
  }

  MemoryFigures figures() {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> free_;
  MemoryFigures figures_;
};

// Never destroyed: arrays with static lifetime may outlive any other static object.
Cache& cache() {
  static Cache& cache = *new Cache;
  return cache;
}

void* fresh_block(int64_t size) {
  const int64_t alignment = size >= kHugePage ? kHugePage : 64;
  void* data = nullptr;
  if (posix_memalign(&data, static_cast<size_t>(alignment), static_cast<size_t>(size)) != 0)
    return nullptr;
  if (size >= kHugePage) madvise(data, static_cast<size_t>(size), MADV_HUGEPAGE);
  return data;
}

}  // namespace

void* allocate(Cpu, int64_t bytes) {
  instruction_set(Cpu{});  // whatever computes on the array is chosen by now
  if (bytes == 0) return nullptr;
  check(bytes <= INT64_MAX / 2, "memory: cannot allocate {} bytes; use smaller arrays", bytes);
  const int64_t size = block_bytes(bytes);
  void* data = cache().take(bytes);
  if (data == nullptr) data = fresh_block(size);
  if (data == nullptr) {
    cache().release();
    data = fresh_block(size);
  }
  if (data == nullptr) {
    cache().undo_take(bytes);
    fail("memory: cannot allocate {} bytes, {} are in use; use a smaller batch or model", bytes,
         cache().figures().live);
  }
  ASAN_POISON_MEMORY_REGION(data, static_cast<size_t>(size));
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

}  // namespace gs::backend
