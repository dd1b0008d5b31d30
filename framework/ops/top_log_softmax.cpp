#include "framework/ops/top_log_softmax.h"

#include <algorithm>
#include <cstdint>

#include "framework/backend/top_log_softmax.h"
#include "framework/core/profiler.h"
#include "framework/ops/floating.h"
#include "framework/ops/operands.h"

namespace gs {

namespace {

struct Results {
  Array values, indices;
};

// Checks what both forms share, and makes room for their results.
Results results_of(const char* name, const Tensor& x, int64_t classes, int64_t count) {
  check_floating(name, x);
  check(count >= 1, "{}: at least 1 class is wanted, got {}", name, count);
  check(classes <= INT32_MAX, "{}: int32 numbers at most {} classes, got {}", name, INT32_MAX,
        classes);
  const Shape shape{x.size(0), std::min(count, classes)};
  return {Array::empty(shape, x.dtype(), x.device()), Array::empty(shape, kInt32, x.device())};
}

}  // namespace

TopLogSoftmax top_log_softmax(const Tensor& logits, int64_t count) {
  constexpr const char* kName = "top_log_softmax";
  const OperationTimer timer(kName);
  check_operand(kName, logits);
  check(logits.rank() == 2, "{}: needs logits (R, V), got {}", kName, logits.shape());
  refuse_gradient(kName, {logits});
  Results results = results_of(kName, logits, logits.size(1), count);
  on_device(logits.device(), [&](auto on) {
    backend::top_log_softmax(on, results.values, results.indices, logits.value());
  });
  return {Tensor(results.values), Tensor(results.indices)};
}

TopLogSoftmax linear_top_log_softmax(const Tensor& x, const Tensor& transposed_weight,
                                     const Tensor& bias, int64_t count) {
  constexpr const char* kName = "linear_top_log_softmax";
  const OperationTimer timer(kName);
  check_operands(kName, x, transposed_weight);
  check(x.rank() == 2 && transposed_weight.rank() == 2 && x.size(1) == transposed_weight.size(0),
        "{}: needs x (R, C) and a transposed weight (C, V), got {} and {}", kName, x.shape(),
        transposed_weight.shape());
  const int64_t classes = transposed_weight.size(1);
  if (bias.defined()) {
    check_operands(kName, x, bias);
    check(bias.shape() == Shape({classes}), "{}: the bias must be [{}], got {}", kName, classes,
          bias.shape());
  }
  refuse_gradient(kName, {x, transposed_weight, bias});
  Results results = results_of(kName, x, classes, count);
  on_device(x.device(), [&](auto on) {
    backend::linear_top_log_softmax(on, results.values, results.indices, x.value(),
                                    transposed_weight.value(), bias.value());
  });
  return {Tensor(results.values), Tensor(results.indices)};
}

}  // namespace gs
