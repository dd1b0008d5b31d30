#include "framework/backend/sum_to.h"

#include <algorithm>
#include <vector>

#include "framework/backend/copy.h"
#include "framework/core/parallel.h"

// Bound by memory: one read of x. x is seen as alternating runs of kept and summed dimensions, and
// one run after another is summed, the outermost first, since it leaves the least to do.
namespace gs::backend {
namespace {

// Additions in a row before a partial sum starts anew: rounding grows with it, not with the length.
constexpr int64_t kBlock = 256;

// y (outer, inner) = the sum of x (outer, length, inner) over its middle.
template <typename T>
void sum_middle(T* y, const T* x, int64_t outer, int64_t length, int64_t inner) {
  const int64_t columns = std::min<int64_t>(inner, 1024);
  const int64_t tiles = columns == 0 ? 0 : (inner + columns - 1) / columns;
  const int64_t grain =
      std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, length * columns));
  parallel_for(0, outer * tiles, grain, [&](int64_t first, int64_t last) {
    std::vector<T> block(static_cast<size_t>(columns));
    std::vector<double> total(static_cast<size_t>(columns));
    for (int64_t item = first; item < last; ++item) {
      const int64_t row = item / tiles, start = item % tiles * columns;
      const int64_t width = std::min(columns, inner - start);
      const T* const in = x + row * length * inner + start;
      std::fill(total.begin(), total.end(), 0.0);
      for (int64_t from = 0; from < length; from += kBlock) {
        std::fill(block.begin(), block.end(), T(0));
        for (int64_t l = from; l < std::min(length, from + kBlock); ++l) {
          T* const sum = block.data();
          const T* const values = in + l * inner;
          for (int64_t c = 0; c < width; ++c) sum[c] += values[c];
        }
        for (int64_t c = 0; c < width; ++c)
          total[static_cast<size_t>(c)] += static_cast<double>(block[static_cast<size_t>(c)]);
      }
      for (int64_t c = 0; c < width; ++c)
        y[row * inner + start + c] = static_cast<T>(total[static_cast<size_t>(c)]);
    }
  });
}

// y (outer) = the sum of each row of x (outer, length).
template <typename T>
void sum_last(T* y, const T* x, int64_t outer, int64_t length) {
  constexpr int64_t kLanes = 16;
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, length));
  parallel_for(0, outer, grain, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* const in = x + row * length;
      double total = 0;
      for (int64_t from = 0; from < length; from += kBlock * kLanes) {
        const int64_t to = std::min(length, from + kBlock * kLanes);
        T lanes[kLanes] = {};
        int64_t i = from;
        for (; i + kLanes <= to; i += kLanes) {
          for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += in[i + lane];
        }
        for (; i < to; ++i) total += static_cast<double>(in[i]);
        for (const T lane : lanes) total += static_cast<double>(lane);
      }
      y[row] = static_cast<T>(total);
    }
  });
}

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

template <typename T>
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
    if (inner == 1) {
      sum_last(target.data<T>(), source.data<T>(), outer, run->size);
    } else {
      sum_middle(target.data<T>(), source.data<T>(), outer, run->size, inner);
    }
    if (is_last) return;
    runs.erase(run);
    source = target;
  }
}

}  // namespace

void sum_to(Cpu, Array& y, const Array& x) {
  if (y.elements() == 0) return;
  dispatch_floating("sum_to", x.dtype(), [&](auto zero) {
    sum_runs<decltype(zero)>(y, x, runs_of(x.shape(), y.shape()));
  });
}

}  // namespace gs::backend
