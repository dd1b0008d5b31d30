#include "framework/ops/loss.h"

#include "framework/backend/scale.h"
#include "framework/core/profiler.h"

namespace gs {

Count::operator int64_t() const {
  if (!value_) value_ = static_cast<int64_t>(array_.values<double>()[0]);
  return *value_;
}

Array Count::array(Device device) const {
  if (array_.defined()) return array_;
  return Array::full({}, static_cast<double>(*value_), kFloat64, device);
}

Tensor Loss::mean() const {
  const OperationTimer timer("loss mean");
  const auto scaled = [count = count.array(sum.device())](const Array& x) {
    Array y = Array::like(x);
    on_device(x.device(), [&](auto on) { backend::average(on, y, x, count); });
    return y;
  };
  // dsum = dmean / count
  return record("loss mean", scaled(sum.value()), {sum},
                [scaled](const Array& dy) { return Gradients{scaled(dy)}; });
}

}  // namespace gs
