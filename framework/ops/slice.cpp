#include "framework/ops/slice.h"

#include <algorithm>

#include "framework/backend/copy.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

// `count` places of the rows of the whole, from `start` on.
struct Places {
  Rows rows;
  int64_t start, step, count;
};

// Calls copy(part offset, part stride, whole offset, whole stride, blocks, length): with a step of
// 1 a row's part is one block; else the shorter of the two loops stays outside.
template <typename Copy>
void for_each_run(const Places& at, Copy copy) {
  const Rows& rows = at.rows;
  const int64_t whole = rows.length * rows.inner, part = at.count * rows.inner;
  const int64_t first = at.start * rows.inner, step = at.step * rows.inner;
  if (at.step == 1 || at.count <= 1) {
    copy(0, part, first, whole, rows.outer, part);
  } else if (rows.outer <= at.count) {
    for (int64_t o = 0; o < rows.outer; ++o)
      copy(o * part, rows.inner, o * whole + first, step, at.count, rows.inner);
  } else {
    for (int64_t k = 0; k < at.count; ++k)
      copy(k * rows.inner, part, first + k * step, whole, rows.outer, rows.inner);
  }
}

void copy_out(Array& part, const Array& whole, const Places& at) {
  on_device(part.device(), [&](auto on) {
    for_each_run(at, [&](int64_t part_start, int64_t part_stride, int64_t start, int64_t stride,
                         int64_t blocks, int64_t length) {
      backend::copy_blocks(on, part, whole,
                           {blocks, length, part_start, part_stride, start, stride});
    });
  });
}

void copy_in(Array& whole, const Array& part, const Places& at, bool adds) {
  on_device(part.device(), [&](auto on) {
    for_each_run(at, [&](int64_t part_start, int64_t part_stride, int64_t start, int64_t stride,
                         int64_t blocks, int64_t length) {
      const backend::Blocks places{blocks, length, start, stride, part_start, part_stride};
      if (adds) {
        backend::accumulate_blocks(on, whole, part, places);
      } else {
        backend::copy_blocks(on, whole, part, places);
      }
    });
  });
}

}  // namespace

Tensor slice(const Tensor& x, int64_t dimension, int64_t start, int64_t end, int64_t step) {
  const OperationTimer timer("slice");
  const int d = normalize_dimension("slice", dimension, x.rank());
  const int64_t size = x.shape()[d];
  check(step >= 1, "slice: the step must be 1 or more, got {}", step);
  const int64_t from = start < 0 ? start + size : start;
  const int64_t to = end == kEnd ? size : end < 0 ? end + size : end;
  check(from >= 0 && to <= size && from <= to,
        "slice: {} to {} is not within dimension {}, got shape {}; use 0 <= start <= end <= {}",
        start, end == kEnd ? size : end, dimension, x.shape(), size);
  const int64_t stride = std::min(step, std::max<int64_t>(1, size));  // longer ones overflow
  const Places at{Rows::of_dimension(x.shape(), d), from, stride,
                  (to - from + stride - 1) / stride};
  Array y = Array::empty(x.shape().with(d, at.count), x.dtype(), x.device());
  copy_out(y, x.value(), at);
  // dx = dy at the places taken, 0 elsewhere. The second of several slices finds the gradient of
  // the first and touches no other places.
  return record("slice", y, {x}, [at, shape = x.shape()](const Array& dy, const Needs& needs) {
    Array dx = needs.take_sum(0);
    const bool adds = dx.defined(), all = at.count == at.rows.length;
    if (!adds) {
      dx = all ? Array::empty(shape, dy.dtype(), dy.device())
               : Array::zeros(shape, dy.dtype(), dy.device());
    }
    copy_in(dx, dy, at, adds);
    return Gradients{dx};
  });
}

}  // namespace gs
