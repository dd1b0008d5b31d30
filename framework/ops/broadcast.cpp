#include "framework/ops/broadcast.h"

#include "framework/backend/broadcast.h"
#include "framework/backend/sum_to.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

bool fills(const Shape& x, const Shape& shape) {
  const int missing = shape.rank() - x.rank();
  if (missing < 0) return false;
  for (int d = 0; d < x.rank(); ++d) {
    if (x[d] != 1 && x[d] != shape[d + missing]) return false;
  }
  return true;
}

}  // namespace

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  const OperationTimer timer("broadcast_to");
  check(fills(x.shape(), shape), "broadcast_to: {} does not fill {}; sizes must be equal or 1",
        x.shape(), shape);
  Array y = Array::empty(shape, x.dtype(), x.device());
  on_device(x.device(), [&](auto on) { backend::broadcast(on, y, x.value()); });
  // dx = sum of dy over what was repeated
  return record("broadcast_to", y, {x}, [from = x.shape()](const Array& dy) {
    Array dx = Array::empty(from, dy.dtype(), dy.device());
    on_device(dy.device(), [&](auto on) { backend::sum_to(on, dx, dy); });
    return Gradients{dx};
  });
}

}  // namespace gs
