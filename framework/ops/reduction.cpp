#include "framework/ops/reduction.h"

#include <algorithm>

#include "framework/backend/permute.h"

namespace gs {
namespace {

Shape in_order(const Shape& shape, const std::vector<int>& order) {
  std::vector<int64_t> sizes;
  for (const int d : order) sizes.push_back(shape[d]);
  return Shape(sizes);
}

}  // namespace

Reduction::Reduction(const char* operation, const Shape& shape, std::span<const int64_t> dimensions,
                     bool keep)
    : from(shape), kept(shape) {
  const std::vector<int> reduced = normalize_dimensions(operation, dimensions, shape.rank());
  std::vector<int64_t> sizes;
  int runs = 0;  // of dimensions reduced; those of size 1 belong to any
  bool inside = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const bool reduces = std::binary_search(reduced.begin(), reduced.end(), d);
    if (reduces) kept = kept.with(d, 1);
    if (!reduces || keep) sizes.push_back(reduces ? 1 : shape[d]);
    if (!reduces) order.push_back(d);
    if (shape[d] == 1) continue;
    if (reduces && !inside) ++runs;
    inside = reduces;
    (reduces ? rows.length : runs == 0 ? rows.outer : rows.inner) *= shape[d];
  }
  result = Shape(sizes);
  if (runs <= 1) {
    order.clear();
    return;
  }
  order.insert(order.end(), reduced.begin(), reduced.end());
  rows.outer *= rows.inner;
  rows.inner = 1;
}

Array Reduction::arranged(const Array& x) const {
  if (order.empty()) return x;
  Array y = Array::empty(in_order(from, order), x.dtype(), x.device());
  on_device(x.device(), [&](auto on) { backend::permute(on, y, x, order); });
  return y;
}

Array Reduction::restored(const Array& dx) const {
  if (order.empty()) return dx;
  std::vector<int> inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    inverse[static_cast<size_t>(order[d])] = static_cast<int>(d);
  Array y = Array::empty(from, dx.dtype(), dx.device());
  const Array x = dx.reshaped(in_order(from, order));
  on_device(dx.device(), [&](auto on) { backend::permute(on, y, x, inverse); });
  return y;
}

}  // namespace gs
