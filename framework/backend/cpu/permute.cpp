#include "framework/backend/permute.h"

#include <algorithm>
#include <cstring>

#include "framework/backend/copy.h"
#include "framework/backend/element_size.h"
#include "framework/backend/permute_axes.h"
#include "framework/core/parallel.h"

// Bound by memory. Where the last dimension stays last, as in splitting heads, whole blocks are
// copied; otherwise tiles are turned, so that each line of the cache is read and written once.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 14, kTile = 16;

// y's last axis is x's as well: blocks of it, the axis before it in an inner loop.
void copy_rows(char* y, const char* x, PermuteAxes axes, int64_t element) {
  const Axis block = axes.take_last();
  const Axis row = axes.count() > 0 ? axes.take_last() : Axis{};
  const size_t bytes = static_cast<size_t>(block.size * element);
  const int64_t y_step = row.y_stride * element, x_step = row.x_stride * element;
  const int64_t grain = std::max<int64_t>(1, kGrain / block.size);
  parallel_for(0, axes.places() * row.size, grain, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t place = first / row.size, start = first - place * row.size;
      const int64_t count = std::min(row.size - start, last - first);
      const PermuteAxes::Offsets offsets = axes.at(place);
      char* out = y + offsets.y * element + start * y_step;
      const char* in = x + offsets.x * element + start * x_step;
      for (int64_t i = 0; i < count; ++i, out += y_step, in += x_step) std::memcpy(out, in, bytes);
      first += count;
    }
  });
}

template <typename T>
void turn_tiles(T* y, const T* x, PermuteAxes axes) {
  const Axis columns = axes.take_last();  // dense in y
  const Axis rows = axes.take_dense();    // dense in x
  const int64_t across = (columns.size + kTile - 1) / kTile, down = (rows.size + kTile - 1) / kTile;
  const int64_t tile = std::min(kTile, columns.size) * std::min(kTile, rows.size);
  const int64_t grain = std::max<int64_t>(1, kGrain / tile);
  parallel_for(0, axes.places() * down * across, grain, [&](int64_t first, int64_t last) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t column = unit % across * kTile, row = unit / across % down * kTile;
      const PermuteAxes::Offsets offsets = axes.at(unit / across / down);
      const int64_t width = std::min(kTile, columns.size - column);
      const int64_t height = std::min(kTile, rows.size - row);
      T* out = y + offsets.y + row * rows.y_stride + column;
      const T* in = x + offsets.x + column * columns.x_stride + row;
      for (int64_t r = 0; r < height; ++r, out += rows.y_stride, ++in) {
        for (int64_t c = 0; c < width; ++c) out[c] = in[c * columns.x_stride];
      }
    }
  });
}

}  // namespace

void permute(Cpu cpu, Array& y, const Array& x, std::span<const int> order) {
  if (y.elements() == 0) return;
  PermuteAxes axes(y.shape(), x.shape(), order);
  if (axes.count() <= 1) return copy(cpu, y, x);
  if (axes.back().x_stride == 1)
    return copy_rows(static_cast<char*>(y.raw()), static_cast<const char*>(x.raw()), axes,
                     size_of(y.dtype()));
  dispatch_element_size(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    turn_tiles(static_cast<T*>(y.raw()), static_cast<const T*>(x.raw()), axes);
  });
}

}  // namespace gs::backend
