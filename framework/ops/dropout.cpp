#include "framework/ops/dropout.h"

#include "framework/backend/dropout.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"

namespace gs {

Tensor dropout(const Tensor& x, double probability, bool training, Generator& generator) {
  check(probability >= 0 && probability <= 1, "dropout: probability must be in [0, 1], got {}",
        probability);
  check_floating("dropout", x);
  if (!training || probability == 0) return x;
  const OperationTimer timer("dropout");
  const auto mask = backend::DropoutMask::of(probability, generator.next());
  Array y = Array::like(x.value());
  on_device(x.device(), [&](auto on) { backend::dropout(on, y, x.value(), mask); });
  // dx = dy * mask
  return record("dropout", y, {x}, [mask](const Array& dy) {
    Array dx = Array::like(dy);
    on_device(dy.device(), [&](auto on) { backend::dropout(on, dx, dy, mask); });
    return Gradients{dx};
  });
}

}  // namespace gs
