#include "framework/ops/top_log_softmax.h"

#include <algorithm>
#include <cstdint>

#include "framework/backend/top_log_softmax.h"
#include "framework/core/profiler.h"

namespace gs {

TopLogSoftmax top_log_softmax(const Tensor& logits, int64_t count) {
  constexpr const char* kName = "top_log_softmax";
  const OperationTimer timer(kName);
  check(logits.defined() && logits.rank() == 2, "{}: needs logits (R, V), got {}", kName,
        logits.defined() ? logits.shape().text() : "an undefined tensor");
  check(is_floating(logits.dtype()), "{}: needs float32 or float64, got {}; cast it first", kName,
        logits.dtype());
  check(count >= 1, "{}: at least 1 class is wanted, got {}", kName, count);
  check(logits.size(1) <= INT32_MAX, "{}: int32 numbers at most {} classes, got {}", kName,
        INT32_MAX, logits.size(1));
  refuse_gradient(kName, {logits});
  const Shape shape{logits.size(0), std::min(count, logits.size(1))};
  Array values = Array::empty(shape, logits.dtype(), logits.device());
  Array indices = Array::empty(shape, kInt32, logits.device());
  on_device(logits.device(),
            [&](auto on) { backend::top_log_softmax(on, values, indices, logits.value()); });
  return {Tensor(values), Tensor(indices)};
}

}  // namespace gs
