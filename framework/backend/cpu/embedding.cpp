#include "framework/backend/embedding.h"

#include <algorithm>
#include <vector>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/embedding.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Bound by memory: the rows that are taken, and backward the whole gradient of the table.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

// y (width) = the sum of the rows of x at `order[0, count)`, added to y with kAdds.
template <bool kAdds, typename T>
void sum_rows(T* y, const T* x, const int64_t* order, int64_t count, int64_t width) {
  if constexpr (kAdds) {
    if (count == 0) return;
  } else {
    if (count == 0) return void(std::fill_n(y, width, T{0}));
    if (count == 1) return void(std::copy_n(x + order[0] * width, width, y));
  }
  constexpr int64_t kTile = 64;
  for (int64_t first = 0; first < width; first += kTile) {
    double sum[kTile];
    const int64_t columns = std::min(kTile, width - first);
    for (int64_t j = 0; j < columns; ++j)
      sum[j] = static_cast<double>(x[order[0] * width + first + j]);
    for (int64_t k = 1; k < count; ++k) {
      const T* const row = x + order[k] * width + first;
      for (int64_t j = 0; j < columns; ++j) sum[j] += static_cast<double>(row[j]);
    }
    for (int64_t j = 0; j < columns; ++j) {
      const T value = static_cast<T>(sum[j]);
      y[first + j] = kAdds ? y[first + j] + value : value;
    }
  }
}

// Rows first to last - 1 of dweight, from the positions of each.
void sum_positions(Array& dweight, const Array& dy, const int64_t* start, const int64_t* order,
                   bool adds, int64_t first, int64_t last) {
  const int64_t width = dweight.shape()[1];
  dispatch_floating("embedding", dweight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t v = first; v < last; ++v) {
      const auto sum = adds ? sum_rows<true, T> : sum_rows<false, T>;
      sum(dweight.data<T>() + v * width, dy.data<T>(), order + start[v], start[v + 1] - start[v],
          width);
    }
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(sum_positions);

constexpr int64_t kGrain = 1 << 15;

int64_t rows_per_piece(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

// The positions of each row of the table, by counting sort: those of row v are
// order[start[v]] to order[start[v + 1] - 1], ascending.
struct Positions {
  std::vector<int64_t> start, order;
};

Positions positions_by_row(const Array& indices, int64_t rows, std::optional<int64_t> skipped) {
  const int32_t* const index = indices.data<int32_t>();
  const int64_t count = indices.elements();
  Positions positions;
  // One place ahead: while the positions are handed out, start[v + 1] is where row v goes on.
  positions.start.assign(static_cast<size_t>(rows) + 2, 0);
  int64_t* const next = positions.start.data() + 1;
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] != skipped) ++next[index[i] + 1];
  }
  for (int64_t v = 0; v < rows; ++v) next[v + 1] += next[v];
  positions.order.resize(static_cast<size_t>(next[rows]));
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] != skipped) positions.order[static_cast<size_t>(next[index[i]]++)] = i;
  }
  return positions;
}

}  // namespace

void embedding(Cpu, Array& y, const Array& weight, const Array& indices) {
  const int64_t width = weight.shape()[1];
  const int32_t* const index = indices.data<int32_t>();
  dispatch_floating("embedding", weight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const out = y.data<T>();
    const T* const in = weight.data<T>();
    parallel_for(0, indices.elements(), rows_per_piece(width), [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        std::copy_n(in + index[i] * width, width, out + i * width);
    });
  });
}

void embedding_backward(Cpu, Array& dweight, const Array& dy, const Array& indices,
                        std::optional<int64_t> padding_index, bool adds) {
  const int64_t rows = dweight.shape()[0], width = dweight.shape()[1];
  const Positions positions = positions_by_row(indices, rows, padding_index);
  parallel_for(0, rows, rows_per_piece(width), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(sum_positions)
    (dweight, dy, positions.start.data(), positions.order.data(), adds, first, last);
  });
}

}  // namespace gs::backend
#endif
