#include "framework/ops/cast.h"

#include "framework/core/profiler.h"
#include "framework/ops/operands.h"

namespace gs {

Tensor cast(const Tensor& x, DType dtype) {
  check_operand("cast", x);
  if (x.dtype() == dtype) return x;
  const OperationTimer timer("cast");
  if (dtype == kBFloat16 && x.device() == Device::cpu()) refuse_gradient("cast", {x});
  if (!is_floating(dtype) && dtype != kBFloat16) return Tensor(x.value().to(dtype));
  return record("cast", x.value().to(dtype), {x},
                [from = x.dtype()](const Array& dy) { return Gradients{dy.to(from)}; });
}

}  // namespace gs
