#include "framework/ops/creation.h"

#include <algorithm>
#include <cmath>

#include "framework/backend/indexing.h"
#include "framework/backend/random.h"
#include "framework/core/profiler.h"
#include "framework/ops/index_checks.h"

namespace gs {
namespace {

void check_floating(const char* operation, DType dtype) {
  check(is_floating(dtype), "{}: gives float32 or float64, got {}; cast the result", operation,
        dtype);
}

bool fits_int32(double value) {
  return value >= INT32_MIN && value <= INT32_MAX && value == std::trunc(value);
}

}  // namespace

Tensor zeros(const Shape& shape, CreationOptions options) { return full(shape, 0, options); }

Tensor ones(const Shape& shape, CreationOptions options) { return full(shape, 1, options); }

Tensor full(const Shape& shape, double value, CreationOptions options) {
  const OperationTimer timer("full");
  check(options.dtype != kInt32 || fits_int32(value), "full: int32 does not hold {}", value);
  return Tensor(Array::full(shape, value, options.dtype, options.device));
}

Tensor zeros_like(const Tensor& x) {
  return zeros(x.shape(), {.dtype = x.dtype(), .device = x.device()});
}

Tensor ones_like(const Tensor& x) {
  return ones(x.shape(), {.dtype = x.dtype(), .device = x.device()});
}

Tensor arange(double start, double end, double step, CreationOptions options) {
  const OperationTimer timer("arange");
  check(std::isfinite(start) && std::isfinite(end) && std::isfinite(step) && step != 0,
        "arange: needs finite numbers and a step other than 0, got {} to {} by {}", start, end,
        step);
  const double length = std::max(0.0, std::ceil((end - start) / step));
  check(length <= 0x1p40, "arange: too many elements, got {} to {} by {}", start, end, step);
  const int64_t count = static_cast<int64_t>(length);
  const double last = start + static_cast<double>(std::max<int64_t>(0, count - 1)) * step;
  check(options.dtype != kInt32 ||
            (fits_int32(start) && step == std::trunc(step) && fits_int32(last)),
        "arange: int32 does not hold all of {} to {} by {}; ask for float32", start, end, step);
  check(options.dtype == kInt32 || is_floating(options.dtype),
        "arange: gives int32, float32 or float64, got {}", options.dtype);
  Array y = Array::empty({count}, options.dtype);
  const auto write = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i)
      y.data<T>()[i] = static_cast<T>(start + static_cast<double>(i) * step);
  };
  dispatch_any("arange", options.dtype, write);
  return Tensor(options.device == Device::cpu() ? y : y.to(options.device));
}

Tensor arange(int64_t count, CreationOptions options) {
  check(count >= 0, "arange: the count must not be negative, got {}", count);
  return arange(0, static_cast<double>(count), 1, options);
}

Tensor rand(const Shape& shape, CreationOptions options, Generator& generator) {
  const OperationTimer timer("rand");
  check_floating("rand", options.dtype);
  Array y = Array::empty(shape, options.dtype, options.device);
  const RandomStream stream = generator.next();
  on_device(options.device, [&](auto on) { backend::random_uniform(on, y, stream, 0, 1); });
  return Tensor(y);
}

Tensor randn(const Shape& shape, CreationOptions options, Generator& generator) {
  const OperationTimer timer("randn");
  check_floating("randn", options.dtype);
  Array y = Array::empty(shape, options.dtype, options.device);
  const RandomStream stream = generator.next();
  on_device(options.device, [&](auto on) { backend::random_normal(on, y, stream, 0, 1); });
  return Tensor(y);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, Device device, Generator& generator) {
  const OperationTimer timer("randint");
  check(low < high && low >= INT32_MIN && high <= int64_t{INT32_MAX} + 1,
        "randint: needs low < high within int32, got {} and {}", low, high);
  Array y = Array::empty(shape, kInt32, device);
  const RandomStream stream = generator.next();
  on_device(device, [&](auto on) { backend::random_integers(on, y, stream, low, high); });
  return Tensor(y);
}

Tensor one_hot(const Tensor& indices, int64_t classes, DType dtype) {
  const OperationTimer timer("one_hot");
  check(classes >= 0, "one_hot: the number of classes must not be negative, got {}", classes);
  check(indices.rank() < Shape::kMaxRank, "one_hot: at most {} dimensions, got {}",
        Shape::kMaxRank - 1, indices.shape());
  check_indices("one_hot", indices, classes, indices.device());
  std::vector<int64_t> sizes(indices.shape().begin(), indices.shape().end());
  sizes.push_back(classes);
  Array y = Array::zeros(Shape(sizes), dtype, indices.device());
  on_device(indices.device(), [&](auto on) { backend::one_hot(on, y, indices.value(), classes); });
  return Tensor(y);
}

}  // namespace gs
