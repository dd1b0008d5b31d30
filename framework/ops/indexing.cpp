#include "framework/ops/indexing.h"

#include "framework/backend/indexing.h"
#include "framework/core/profiler.h"
#include "framework/ops/index_checks.h"

namespace gs {

Tensor index_select(const Tensor& x, int64_t dimension, const Tensor& indices) {
  const OperationTimer timer("index_select");
  const int d = normalize_dimension("index_select", dimension, x.rank());
  check(indices.rank() == 1, "index_select: indices must have one dimension, got shape {}",
        indices.shape());
  check_indices("index_select", indices, x.shape()[d], x.device());
  const Rows rows = Rows::of_dimension(x.shape(), d);
  Array y = Array::empty(x.shape().with(d, indices.elements()), x.dtype(), x.device());
  on_device(x.device(),
            [&](auto on) { backend::index_select(on, y, x.value(), indices.value(), rows); });
  // dx[r] = sum of dy[k] over the k with indices[k] == r
  return record("index_select", y, {x},
                [indices = Saved(indices.value()), rows, shape = x.shape()](const Array& dy) {
                  Array dx = Array::empty(shape, dy.dtype(), dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::index_select_backward(on, dx, dy, indices.value(), rows);
                  });
                  return Gradients{dx};
                });
}

Tensor gather(const Tensor& x, int64_t dimension, const Tensor& indices) {
  const OperationTimer timer("gather");
  const int d = normalize_dimension("gather", dimension, x.rank());
  check(indices.rank() == x.rank() && indices.shape().with(d, x.shape()[d]) == x.shape(),
        "gather: indices must have the sizes of x but in dimension {}, got {} for {}", dimension,
        indices.shape(), x.shape());
  check_indices("gather", indices, x.shape()[d], x.device());
  const Rows rows = Rows::of_dimension(x.shape(), d);
  Array y = Array::empty(indices.shape(), x.dtype(), x.device());
  on_device(x.device(), [&](auto on) { backend::gather(on, y, x.value(), indices.value(), rows); });
  // dx[r] = sum of dy[k] over the k with indices[k] == r, column by column
  return record("gather", y, {x},
                [indices = Saved(indices.value()), rows, shape = x.shape()](const Array& dy) {
                  Array dx = Array::empty(shape, dy.dtype(), dy.device());
                  on_device(dy.device(), [&](auto on) {
                    backend::gather_backward(on, dx, dy, indices.value(), rows);
                  });
                  return Gradients{dx};
                });
}

}  // namespace gs
