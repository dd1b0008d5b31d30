#include "framework/ops/reshape.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/profiler.h"

namespace gs {
namespace {

// The sizes with -1 replaced.
Shape complete(std::span<const int64_t> sizes, const Shape& from) {
  const std::string text = fmt::format("[{}]", fmt::join(sizes, ", "));
  std::vector<int64_t> result(sizes.begin(), sizes.end());
  const auto open = std::find(result.begin(), result.end(), -1);
  for (auto size = result.begin(); size != result.end(); ++size)
    check(*size >= 0 || size == open, "reshape: sizes must be 0 or more and one may be -1, got {}",
          text);
  if (open != result.end()) {
    *open = 1;
    const int64_t others = Shape(result).elements();
    check(others != 0, "reshape: any size would do for the -1 in {}, since another is 0; name it",
          text);
    check(from.elements() % others == 0, "reshape: {} elements do not fill {}, got shape {}",
          from.elements(), text, from);
    *open = from.elements() / others;
  }
  const Shape shape(result);
  check(shape.elements() == from.elements(), "reshape: {} has {} elements, got shape {} with {}",
        text, shape.elements(), from, from.elements());
  return shape;
}

Tensor reshape_to(const char* name, const Tensor& x, const Shape& shape) {
  const OperationTimer timer(name);
  return record(name, x.value().reshaped(shape), {x},
                [from = x.shape()](const Array& dy) { return Gradients{dy.reshaped(from)}; });
}

}  // namespace

Tensor reshape(const Tensor& x, std::span<const int64_t> sizes) {
  return reshape_to("reshape", x, complete(sizes, x.shape()));
}

Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, std::span<const int64_t>(sizes.begin(), sizes.size()));
}

Tensor squeeze(const Tensor& x) {
  std::vector<int64_t> sizes;
  std::copy_if(x.shape().begin(), x.shape().end(), std::back_inserter(sizes),
               [](int64_t size) { return size != 1; });
  return reshape_to("squeeze", x, Shape(sizes));
}

Tensor squeeze(const Tensor& x, int64_t dimension) {
  const int d = normalize_dimension("squeeze", dimension, x.rank());
  check(x.shape()[d] == 1, "squeeze: dimension {} must have size 1, got shape {}", dimension,
        x.shape());
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes.erase(sizes.begin() + d);
  return reshape_to("squeeze", x, Shape(sizes));
}

Tensor unsqueeze(const Tensor& x, int64_t dimension) {
  const int d = normalize_dimension("unsqueeze", dimension, x.rank() + 1);
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes.insert(sizes.begin() + d, 1);
  return reshape_to("unsqueeze", x, Shape(sizes));
}

Tensor flatten(const Tensor& x, int64_t first, int64_t last) {
  if (x.rank() == 0) return reshape_to("flatten", x, {1});
  const int from = normalize_dimension("flatten", first, x.rank());
  const int to = normalize_dimension("flatten", last, x.rank());
  check(from <= to, "flatten: the first dimension must not come after the last, got {} and {}",
        first, last);
  std::vector<int64_t> sizes(x.shape().begin(), x.shape().begin() + from + 1);
  for (int d = from + 1; d <= to; ++d) sizes.back() *= x.shape()[d];
  sizes.insert(sizes.end(), x.shape().begin() + to + 1, x.shape().end());
  return reshape_to("flatten", x, Shape(sizes));
}

}  // namespace gs
