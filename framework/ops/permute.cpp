#include "framework/ops/permute.h"

#include <fmt/format.h>

#include <numeric>

#include "framework/backend/permute.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

std::vector<int> normalize_order(const Tensor& x, std::span<const int64_t> order) {
  check(static_cast<int>(order.size()) == x.rank(),
        "permute: rank {} needs {} dimensions, got [{}]; name each once", x.rank(), x.rank(),
        fmt::join(order, ", "));
  std::vector<int> result;
  std::vector<bool> seen(order.size());
  for (const int64_t dimension : order) {
    const int d = normalize_dimension("permute", dimension, x.rank());
    check(!seen[static_cast<size_t>(d)], "permute: dimension {} is given twice, got [{}]", d,
          fmt::join(order, ", "));
    seen[static_cast<size_t>(d)] = true;
    result.push_back(d);
  }
  return result;
}

Array permuted(const Array& x, const std::vector<int>& order) {
  std::vector<int64_t> sizes;
  for (const int d : order) sizes.push_back(x.shape()[d]);
  Array y = Array::empty(Shape(sizes), x.dtype(), x.device());
  on_device(x.device(), [&](auto on) { backend::permute(on, y, x, order); });
  return y;
}

Tensor permute_normalized(const char* name, const Tensor& x, const std::vector<int>& order) {
  const OperationTimer timer(name);
  std::vector<int> inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d)
    inverse[static_cast<size_t>(order[d])] = static_cast<int>(d);
  return record(name, permuted(x.value(), order), {x},
                [inverse](const Array& dy) { return Gradients{permuted(dy, inverse)}; });
}

}  // namespace

Tensor permute(const Tensor& x, std::span<const int64_t> order) {
  return permute_normalized("permute", x, normalize_order(x, order));
}

Tensor permute(const Tensor& x, std::initializer_list<int64_t> order) {
  return permute(x, std::span<const int64_t>(order.begin(), order.size()));
}

Tensor transpose(const Tensor& x, int64_t first, int64_t second) {
  std::vector<int> order(static_cast<size_t>(x.rank()));
  std::iota(order.begin(), order.end(), 0);
  const int a = normalize_dimension("transpose", first, x.rank());
  const int b = normalize_dimension("transpose", second, x.rank());
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return permute_normalized("transpose", x, order);
}

}  // namespace gs
