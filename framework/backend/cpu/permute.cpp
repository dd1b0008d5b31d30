#include "framework/backend/permute.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "framework/backend/copy.h"
#include "framework/core/parallel.h"

// Bound by memory. Where the last dimension stays last, as in splitting heads, whole blocks are
// copied; otherwise tiles are turned, so that each line of the cache is read and written once.
namespace gs::backend {
namespace {

constexpr int64_t kGrain = 1 << 14, kTile = 16;

struct Axis {
  int64_t size = 1, y_stride = 0, x_stride = 0;
};

// The axes of y with their strides in both arrays, as few as possible: sizes of 1 are dropped and
// axes that are neighbours in both arrays are joined.
class Axes {
 public:
  Axes(const Shape& y, const Shape& x, std::span<const int> order) {
    std::array<int64_t, Shape::kMaxRank> x_strides{};
    int64_t stride = 1;
    for (int d = x.rank() - 1; d >= 0; --d) {
      x_strides[static_cast<size_t>(d)] = stride;
      stride *= x[d];
    }
    stride = y.elements();
    for (int d = 0; d < y.rank(); ++d) {
      if (y[d] == 1) continue;
      stride /= y[d];
      const int64_t x_stride = x_strides[static_cast<size_t>(order[static_cast<size_t>(d)])];
      if (count_ > 0 && back().x_stride == x_stride * y[d]) {
        back() = {back().size * y[d], stride, x_stride};
      } else {
        axes_[count_++] = {y[d], stride, x_stride};
      }
    }
  }

  size_t count() const { return count_; }
  Axis& back() { return axes_[count_ - 1]; }

  Axis take_last() { return axes_[--count_]; }
  // The axis along which x is dense.
  Axis take_dense() {
    const auto end = axes_.begin() + count_;
    const auto found =
        std::find_if(axes_.begin(), end, [](const Axis& a) { return a.x_stride == 1; });
    const Axis axis = *found;
    std::copy(found + 1, end, found);
    --count_;
    return axis;
  }

  int64_t places() const {
    int64_t places = 1;
    for (size_t d = 0; d < count_; ++d) places *= axes_[d].size;
    return places;
  }

  // A place of the axes, in y's order.
  struct Offsets {
    int64_t y = 0, x = 0;
  };
  Offsets at(int64_t place) const {
    Offsets offsets;
    for (size_t d = count_; d-- > 0;) {
      const Axis& axis = axes_[d];
      const int64_t rest = place / axis.size, index = place - rest * axis.size;
      offsets.y += index * axis.y_stride;
      offsets.x += index * axis.x_stride;
      place = rest;
    }
    return offsets;
  }

 private:
  std::array<Axis, Shape::kMaxRank> axes_{};
  size_t count_ = 0;
};

// y's last axis is x's as well: blocks of it, the axis before it in an inner loop.
void copy_rows(char* y, const char* x, Axes axes, int64_t element) {
  const Axis block = axes.take_last();
  const Axis row = axes.count() > 0 ? axes.take_last() : Axis{};
  const size_t bytes = static_cast<size_t>(block.size * element);
  const int64_t y_step = row.y_stride * element, x_step = row.x_stride * element;
  const int64_t grain = std::max<int64_t>(1, kGrain / block.size);
  parallel_for(0, axes.places() * row.size, grain, [&](int64_t first, int64_t last) {
    while (first < last) {
      const int64_t place = first / row.size, start = first - place * row.size;
      const int64_t count = std::min(row.size - start, last - first);
      const Axes::Offsets offsets = axes.at(place);
      char* out = y + offsets.y * element + start * y_step;
      const char* in = x + offsets.x * element + start * x_step;
      for (int64_t i = 0; i < count; ++i, out += y_step, in += x_step) std::memcpy(out, in, bytes);
      first += count;
    }
  });
}

template <typename T>
void turn_tiles(T* y, const T* x, Axes axes) {
  const Axis columns = axes.take_last();  // dense in y
  const Axis rows = axes.take_dense();    // dense in x
  const int64_t across = (columns.size + kTile - 1) / kTile, down = (rows.size + kTile - 1) / kTile;
  const int64_t tile = std::min(kTile, columns.size) * std::min(kTile, rows.size);
  const int64_t grain = std::max<int64_t>(1, kGrain / tile);
  parallel_for(0, axes.places() * down * across, grain, [&](int64_t first, int64_t last) {
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t column = unit % across * kTile, row = unit / across % down * kTile;
      const Axes::Offsets offsets = axes.at(unit / across / down);
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
  Axes axes(y.shape(), x.shape(), order);
  if (axes.count() <= 1) return copy(cpu, y, x);
  if (axes.back().x_stride == 1)
    return copy_rows(static_cast<char*>(y.raw()), static_cast<const char*>(x.raw()), axes,
                     size_of(y.dtype()));
  const auto turn = [&](auto zero) {
    using T = decltype(zero);
    turn_tiles(static_cast<T*>(y.raw()), static_cast<const T*>(x.raw()), axes);
  };
  switch (size_of(y.dtype())) {
    case 1:
      return turn(uint8_t{});
    case 2:
      return turn(uint16_t{});
    case 4:
      return turn(uint32_t{});
    default:
      return turn(uint64_t{});
  }
}

}  // namespace gs::backend
