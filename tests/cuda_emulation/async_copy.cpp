// Asynchronous copies to shared memory. Between the start of a copy and the wait for it its
// destination holds nobody knows what: who has not finished reading when the copy starts, or does
// not wait, gets NaN, and ThreadSanitizer sees a write at both ends.
#include <cstring>

#include "tests/cuda_emulation/executor.h"
#include "tests/cuda_emulation/options.h"

namespace gs::cuda_emulation {

void start_copy(void* to, const void* from, size_t bytes, size_t source_bytes, Place place) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 ||
      (source_bytes > 0 && reinterpret_cast<uintptr_t>(from) % bytes != 0))
    stop("async copy", "%s: at %s:%d: %p to %p, not aligned to %zu bytes", execution.kernel,
         place.file, place.line, from, to, bytes);
  std::memset(to, 0xff, bytes);
  const AsScheduler scheduler;
  execution.current->copies.push_back({to, from, bytes, source_bytes});
}

void commit_copies() {
  const AsScheduler scheduler;
  execution.current->commits.push_back(execution.current->copies.size());
}

void wait_for_copies(int pending) {
  Thread& thread = *execution.current;
  const size_t groups = thread.commits.size(), kept = static_cast<size_t>(pending);
  if (groups <= kept) return;
  const size_t count = thread.commits[groups - 1 - kept];
  for (size_t i = 0; i < count; ++i) {
    const AsyncCopy& copy = thread.copies[i];
    std::memset(copy.to, 0, copy.bytes);
    if (copy.source_bytes > 0) std::memcpy(copy.to, copy.from, copy.source_bytes);
  }
  const AsScheduler scheduler;
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + static_cast<long>(count));
  thread.commits.erase(thread.commits.begin(), thread.commits.end() - pending);
  for (size_t& each : thread.commits) each -= count;
}

}  // namespace gs::cuda_emulation
