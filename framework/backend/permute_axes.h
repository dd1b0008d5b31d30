#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "framework/core/shape.h"

namespace gs::backend {

// A dimension of y and its strides in y and x, where y is x with its dimensions in another order.
struct Axis {
  int64_t size = 1, y_stride = 0, x_stride = 0;
};

// The axes of y, as few as possible: sizes of 1 are dropped and axes that are neighbours in both
// arrays are joined. Used on the CPU and in kernels.
class PermuteAxes {
 public:
  PermuteAxes(const Shape& y, const Shape& x, std::span<const int> order) {
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
  const Axis& operator[](size_t axis) const { return axes_[axis]; }

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
  constexpr Offsets at(int64_t place) const {
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

}  // namespace gs::backend
