#include "framework/ops/softmax.h"

#include "framework/backend/softmax.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"

namespace gs {
namespace {

Rows rows_of(const char* operation, const Tensor& x, int64_t dimension) {
  check(x.rank() >= 1, "{}: needs at least one dimension, got a scalar", operation);
  check_floating(operation, x);
  return Rows::of_dimension(x.shape(), normalize_dimension(operation, dimension, x.rank()));
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dimension) {
  const OperationTimer timer("softmax");
  const Rows rows = rows_of("softmax", x, dimension);
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::softmax(on, y, x.value(), rows); });
  // dx = y * (dy - sum(dy * y)), row by row
  return record("softmax", y, {x}, [y = Saved(y), rows](const Array& dy) {
    Array dx = Array::like(dy);
    on_device(dy.device(),
              [&](auto on) { backend::softmax_backward(on, dx, y.value(), dy, rows); });
    return Gradients{dx};
  });
}

Tensor log_softmax(const Tensor& x, int64_t dimension) {
  const OperationTimer timer("log_softmax");
  const Rows rows = rows_of("log_softmax", x, dimension);
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::log_softmax(on, y, x.value(), rows); });
  // dx = dy - exp(y) * sum(dy), row by row
  return record("log_softmax", y, {x}, [y = Saved(y), rows](const Array& dy) {
    Array dx = Array::like(dy);
    on_device(dy.device(),
              [&](auto on) { backend::log_softmax_backward(on, dx, y.value(), dy, rows); });
    return Gradients{dx};
  });
}

}  // namespace gs
