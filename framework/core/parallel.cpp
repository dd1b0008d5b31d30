#include "framework/core/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>

#include "framework/core/error.h"

namespace gs {
namespace {

int& thread_count() {
  static int count = [] {
    // The pool's threads do not survive a fork: the child must never wait for them.
    pthread_atfork(nullptr, nullptr, [] { thread_count() = 1; });
    return std::max(1, std::min(omp_get_max_threads(), omp_get_num_procs()));
  }();
  return count;
}

}  // namespace

int threads() { return thread_count(); }

void set_threads(int count) {
  check(count >= 1, "threads: at least 1 is needed, got {}", count);
  thread_count() = count;
}

void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t first, int64_t last)>& body) {
  if (begin >= end) return;
  const int64_t pieces = (end - begin + grain - 1) / std::max<int64_t>(1, grain);
  const int64_t workers = std::min<int64_t>(threads(), pieces);
  if (workers <= 1 || omp_in_parallel()) {
    body(begin, end);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(workers))
  for (int64_t i = 0; i < workers; ++i) {
    const int64_t first = begin + (end - begin) * i / workers;
    const int64_t last = begin + (end - begin) * (i + 1) / workers;
    body(first, last);
  }
}

}  // namespace gs
