#include "framework/ops/loss.h"

#include "framework/backend/scale.h"
#include "framework/core/profiler.h"

namespace gs {

Tensor Loss::mean() const {
  const OperationTimer timer("loss mean");
  const double factor = count == 0 ? 0 : 1 / static_cast<double>(count);
  const auto scaled = [factor](const Array& x) {
    Array y = Array::like(x);
    on_device(x.device(), [&](auto on) { backend::scale(on, y, x, factor); });
    return y;
  };
  // dsum = dmean / count
  return record("loss mean", scaled(sum.value()), {sum},
                [scaled](const Array& dy) { return Gradients{scaled(dy)}; });
}

}  // namespace gs
