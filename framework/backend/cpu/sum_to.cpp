#include "framework/backend/sum_to.h"

#include <algorithm>
#include <vector>

#include "framework/backend/copy.h"
#include "framework/backend/reduce.h"

// Bound by memory: one read of x. x is seen as alternating runs of kept and summed dimensions, and
// one run after another is summed, the outermost first, since it leaves the least to do.
namespace gs::backend {
namespace {

// Maximal runs of neighbouring dimensions that are all kept or all summed.
struct Run {
  int64_t size;
  bool summed;
};

std::vector<Run> runs_of(const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  for (int d = 0; d < from.rank(); ++d) {
    const int target = d - (from.rank() - to.rank());
    const bool summed = target < 0 || to[target] != from[d];
    if (runs.empty() || runs.back().summed != summed) runs.push_back({1, summed});
    runs.back().size *= from[d];
  }
  return runs;
}

void sum_runs(Array& y, const Array& x, std::vector<Run> runs) {
  Array source = x;
  while (true) {
    const auto run = std::find_if(runs.begin(), runs.end(), [](const Run& r) { return r.summed; });
    if (run == runs.end()) return copy(Cpu{}, y, source);
    int64_t outer = 1, inner = 1;
    for (auto other = runs.begin(); other != run; ++other) outer *= other->size;
    for (auto other = run + 1; other != runs.end(); ++other) inner *= other->size;
    const bool is_last = std::none_of(run + 1, runs.end(), [](const Run& r) { return r.summed; });
    Array target = is_last ? y : Array::empty({outer, inner}, x.dtype(), x.device());
    sum(Cpu{}, target, source, {outer, run->size, inner});
    if (is_last) return;
    runs.erase(run);
    source = target;
  }
}

}  // namespace

void sum_to(Cpu, Array& y, const Array& x) {
  if (y.elements() == 0) return;
  sum_runs(y, x, runs_of(x.shape(), y.shape()));
}

}  // namespace gs::backend
