#pragma once

#include <algorithm>
#include <vector>

#include "framework/backend/copy.h"
#include "framework/backend/reduce.h"

namespace gs::backend {

// Maximal runs of neighbouring dimensions that are all kept or all summed.
struct SumRun {
  int64_t size;
  bool summed;
};

inline std::vector<SumRun> sum_runs_of(const Shape& from, const Shape& to) {
  std::vector<SumRun> runs;
  for (int d = 0; d < from.rank(); ++d) {
    const int target = d - (from.rank() - to.rank());
    const bool summed = target < 0 || to[target] != from[d];
    if (runs.empty() || runs.back().summed != summed) runs.push_back({1, summed});
    runs.back().size *= from[d];
  }
  return runs;
}

// sum_to of any device: one run after another is summed, the outermost first, since it leaves the
// least to do. What lies between is not rounded to bfloat16.
template <typename On>
void sum_runs(On on, Array& y, const Array& x) {
  const DType between = x.dtype() == kBFloat16 ? kFloat32 : x.dtype();
  std::vector<SumRun> runs = sum_runs_of(x.shape(), y.shape());
  const auto is_summed = [](const SumRun& run) { return run.summed; };
  Array source = x;
  while (true) {
    const auto run = std::find_if(runs.begin(), runs.end(), is_summed);
    if (run == runs.end())
      return y.dtype() == source.dtype() ? copy(on, y, source) : cast(on, y, source);
    int64_t outer = 1, inner = 1;
    for (auto other = runs.begin(); other != run; ++other) outer *= other->size;
    for (auto other = run + 1; other != runs.end(); ++other) inner *= other->size;
    const bool is_last = std::none_of(run + 1, runs.end(), is_summed);
    const bool fits = y.dtype() == source.dtype() || y.dtype() == between;
    Array target = is_last && fits ? y : Array::empty({outer, inner}, between, x.device());
    sum(on, target, source, {outer, run->size, inner});
    if (is_last && fits) return;
    runs.erase(run);
    source = target;
  }
}

}  // namespace gs::backend
