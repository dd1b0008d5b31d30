#include "framework/backend/cpu/arena.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace gs::backend {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kGrowth = 16 * kHugePage;

int64_t rounded_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

char* map_at(char* place, int64_t size) {
  void* const start = mmap(place, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start == MAP_FAILED ? nullptr : static_cast<char*>(start);
}

void unmap(char* start, int64_t size) {
  if (size > 0) munmap(start, static_cast<size_t>(size));
}

// `size` bytes from a border of huge pages on, just below `above` where that place is free.
char* map_huge_pages(char* above, int64_t size) {
  if (above != nullptr) {
    char* const start = map_at(above - size, size);
    if (start == above - size || start == nullptr) return start;
    unmap(start, size);
  }
  char* const start = map_at(nullptr, size + kHugePage);
  if (start == nullptr) return nullptr;
  const int64_t head =
      rounded_up(reinterpret_cast<intptr_t>(start), kHugePage) - reinterpret_cast<intptr_t>(start);
  unmap(start, head);
  unmap(start + head + size, kHugePage - head);
  return start + head;
}

}  // namespace

void* Arena::take(int64_t size) {
  auto fit = free_by_size_.lower_bound({size, nullptr});
  if (fit == free_by_size_.end()) {
    if (!grow(size)) return nullptr;
    fit = free_by_size_.lower_bound({size, nullptr});
  }
  const auto [found, start] = *fit;
  remove_free(free_.find(start));
  if (found > size) add_free(start + size, found - size);
  ASAN_UNPOISON_MEMORY_REGION(start, static_cast<size_t>(size));
  return start;
}

void Arena::put(void* block, int64_t size) {
  ASAN_POISON_MEMORY_REGION(block, static_cast<size_t>(size));
  add_free(static_cast<char*>(block), size);
}

bool Arena::grow(int64_t size) {
  // A free span at the lower end makes up for a part of it.
  const int64_t at_hand =
      !free_.empty() && free_.begin()->first == lowest_ ? free_.begin()->second : 0;
  for (const int64_t missing : {size - at_hand, size}) {
    const int64_t length = std::max(kGrowth, rounded_up(missing, kHugePage));
    char* const start = map_huge_pages(lowest_, length);
    if (start == nullptr) return false;
    madvise(start, static_cast<size_t>(length), MADV_HUGEPAGE);
    ASAN_POISON_MEMORY_REGION(start, static_cast<size_t>(length));
    lowest_ = start;
    add_free(start, length);
    if (free_by_size_.rbegin()->first >= size) return true;
  }
  return true;
}

void Arena::add_free(char* start, int64_t size) {
  free_bytes_ += size;
  auto next = free_.upper_bound(start);
  if (next != free_.end() && next->first == start + size) {
    size += next->second;
    free_by_size_.erase({next->second, next->first});
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == start) {
      start = before->first;
      size += before->second;
      free_by_size_.erase({before->second, before->first});
      free_.erase(before);
    }
  }
  free_.emplace(start, size);
  free_by_size_.emplace(size, start);
}

void Arena::remove_free(std::map<char*, int64_t>::iterator span) {
  free_bytes_ -= span->second;
  free_by_size_.erase({span->second, span->first});
  free_.erase(span);
}

void Arena::release() {
  const std::map<char*, int64_t> spans = free_;
  for (const auto& [start, size] : spans) {
    // Whole pages go; what shares a huge page with a live block stays.
    const auto first = reinterpret_cast<intptr_t>(start);
    const int64_t head = std::min(size, rounded_up(first, kHugePage) - first);
    const int64_t pages = (size - head) / kHugePage * kHugePage;
    if (pages == 0) continue;
    remove_free(free_.find(start));
    ASAN_UNPOISON_MEMORY_REGION(start + head, static_cast<size_t>(pages));
    unmap(start + head, pages);
    if (head > 0) add_free(start, head);
    if (size - head > pages) add_free(start + head + pages, size - head - pages);
  }
}

}  // namespace gs::backend
