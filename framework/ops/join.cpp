#include "framework/ops/join.h"

#include <fmt/format.h>

#include <numeric>

#include "framework/backend/copy.h"
#include "framework/core/profiler.h"
#include "framework/ops/reshape.h"
#include "framework/ops/slice.h"

namespace gs {
namespace {

void check_alike(const char* name, const Tensor& first, const Tensor& other, size_t index) {
  check(other.dtype() == first.dtype() && other.device() == first.device(),
        "{}: tensor {} must be {} on {} as the first, got {} on {}; cast or move it", name, index,
        first.dtype(), first.device(), other.dtype(), other.device());
}

// The shape of the tensors joined in dimension d.
Shape joined_shape(std::span<const Tensor> tensors, int d) {
  const Shape& first = tensors[0].shape();
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Shape& shape = tensors[i].shape();
    check_alike("concat", tensors[0], tensors[i], i);
    check(shape.rank() == first.rank() && shape.with(d, first[d]) == first,
          "concat: tensor {} must have the sizes of the first but in dimension {}, got {} and {}",
          i, d, shape, first);
    total += shape[d];
  }
  return first.with(d, total);
}

// The part of a tensor in the whole: `inner` counts what lies below one place of the dimension.
backend::Blocks blocks_of(const Rows& whole, int64_t start, int64_t size) {
  return {.rows = whole.outer,
          .length = size * whole.inner,
          .y_start = start * whole.inner,
          .y_stride = whole.length * whole.inner,
          .x_start = 0,
          .x_stride = size * whole.inner};
}

backend::Blocks reversed(const backend::Blocks& b) {
  return {b.rows, b.length, b.x_start, b.x_stride, b.y_start, b.y_stride};
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, int64_t dimension) {
  const OperationTimer timer("concat");
  check(!tensors.empty(), "concat: at least one tensor is needed");
  check(tensors[0].rank() > 0, "concat: scalars have no dimension to join in; use stack");
  const int d = normalize_dimension("concat", dimension, tensors[0].rank());
  Array y = Array::empty(joined_shape(tensors, d), tensors[0].dtype(), tensors[0].device());
  const Rows whole = Rows::of_dimension(y.shape(), d);
  std::vector<int64_t> sizes;
  int64_t start = 0;
  for (const Tensor& x : tensors) {
    sizes.push_back(x.shape()[d]);
    on_device(y.device(), [&](auto on) {
      backend::copy_blocks(on, y, x.value(), blocks_of(whole, start, sizes.back()));
    });
    start += sizes.back();
  }
  // Each gradient is its part of dy.
  return record("concat", y, tensors, [sizes, whole, d](const Array& dy, const Needs& needs) {
    Gradients gradients(sizes.size());
    int64_t start = 0;
    for (size_t i = 0; i < sizes.size(); start += sizes[i++]) {
      if (!needs[i]) continue;
      gradients[i] = Array::empty(dy.shape().with(d, sizes[i]), dy.dtype(), dy.device());
      on_device(dy.device(), [&](auto on) {
        backend::copy_blocks(on, gradients[i], dy, reversed(blocks_of(whole, start, sizes[i])));
      });
    }
    return gradients;
  });
}

Tensor concat(std::initializer_list<Tensor> tensors, int64_t dimension) {
  return concat(std::span<const Tensor>(tensors.begin(), tensors.size()), dimension);
}

Tensor stack(std::span<const Tensor> tensors, int64_t dimension) {
  check(!tensors.empty(), "stack: at least one tensor is needed");
  const int d = normalize_dimension("stack", dimension, tensors[0].rank() + 1);
  std::vector<Tensor> widened;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_alike("stack", tensors[0], tensors[i], i);
    check(tensors[i].shape() == tensors[0].shape(),
          "stack: tensor {} must have the shape of the first, got {} and {}", i, tensors[i].shape(),
          tensors[0].shape());
    widened.push_back(unsqueeze(tensors[i], d));
  }
  return concat(widened, d);
}

Tensor stack(std::initializer_list<Tensor> tensors, int64_t dimension) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), dimension);
}

std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int64_t dimension) {
  const int d = normalize_dimension("split", dimension, x.rank());
  // Counted down, so that no sum of hostile sizes overflows.
  int64_t left = x.shape()[d];
  bool fits = true;
  for (const int64_t size : sizes) {
    fits = fits && size >= 0 && size <= left;
    if (fits) left -= size;
  }
  check(fits && left == 0, "split: sizes must add up to {} for dimension {} of {}, got [{}]",
        x.shape()[d], dimension, x.shape(), fmt::join(sizes, ", "));
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t size : sizes) {
    parts.push_back(slice(x, d, start, start + size));
    start += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> sizes,
                          int64_t dimension) {
  return split(x, std::span<const int64_t>(sizes.begin(), sizes.size()), dimension);
}

std::vector<Tensor> split(const Tensor& x, int64_t parts, int64_t dimension) {
  const int d = normalize_dimension("split", dimension, x.rank());
  check(parts >= 1 && x.shape()[d] % parts == 0,
        "split: dimension {} of {} has no {} equal parts; give their sizes", dimension, x.shape(),
        parts);
  return split(x, std::vector<int64_t>(static_cast<size_t>(parts), x.shape()[d] / parts), d);
}

}  // namespace gs
