#pragma once

#include <cstdint>
#include <functional>

namespace gs {

// The number of threads that kernels use: by default the processors this process may run on, or
// OMP_NUM_THREADS or OPENBLAS_NUM_THREADS where one is set. Everything, matrix products included,
// runs in this one pool.
int threads();
void set_threads(int count);  // 1 to 1024

// Calls body(first, last) on disjoint ranges that cover [begin, end). A range smaller than `grain`
// is not split, and nested calls run in the calling thread. The split depends on the sizes and on
// threads() alone, so results repeat. Bodies must not throw.
// After a fork the child runs in one thread.
void parallel_for(int64_t begin, int64_t end, int64_t grain,
                  const std::function<void(int64_t first, int64_t last)>& body);

}  // namespace gs
