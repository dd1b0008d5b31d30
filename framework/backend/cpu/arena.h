#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace gs::backend {

// Address space for large blocks, taken from the system in huge pages and handed out best fit;
// freed neighbours join. Batches differ from step to step, so blocks of one size are rarely asked
// for again: cutting and joining keeps the whole as small as what is live. Not thread-safe.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  // `size` bytes, a multiple of kAlignment; null where the system has no more.
  void* take(int64_t size);
  // Takes back what take(size) gave.
  void put(void* block, int64_t size);
  // Gives free address space back to the system.
  void release();
  // Free bytes that are held.
  int64_t free_bytes() const { return free_bytes_; }

 private:
  bool grow(int64_t size);
  void add_free(char* start, int64_t size);
  void remove_free(std::map<char*, int64_t>::iterator span);

  std::map<char*, int64_t> free_;                     // sizes by address
  std::set<std::pair<int64_t, char*>> free_by_size_;  // the same
  int64_t free_bytes_ = 0;
  char* lowest_ = nullptr;  // where the newest address space starts
};

}  // namespace gs::backend
