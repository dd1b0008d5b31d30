#include "framework/ops/cross_entropy.h"

#include "framework/backend/cross_entropy.h"
#include "framework/backend/indices.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

void check_targets(const Tensor& logits, const Tensor& targets,
                   const CrossEntropyOptions& options) {
  const int64_t classes = logits.size(-1);
  const int64_t position = on_device(targets.device(), [&](auto on) {
    return backend::first_outside(on, targets.value(), classes, options.ignore_index);
  });
  if (position < 0) return;
  const int32_t target = targets.values<int32_t>()[static_cast<size_t>(position)];
  if (options.ignore_index) {
    fail("cross_entropy: target {} at position {} is outside 0..{} and not the ignored {}", target,
         position, classes - 1, *options.ignore_index);
  }
  fail("cross_entropy: target {} at position {} is outside 0..{}", target, position, classes - 1);
}

void check_cross_entropy(const Tensor& logits, const Tensor& targets,
                         const CrossEntropyOptions& options) {
  check(logits.rank() >= 1 && is_floating(logits.dtype()),
        "cross_entropy: logits must be (..., V) in float32 or float64, got {} {}", logits.shape(),
        logits.dtype());
  check(targets.dtype() == kInt32, "cross_entropy: targets must be int32, got {}; cast them",
        targets.dtype());
  const Shape expected(std::span<const int64_t>(logits.shape().begin(), logits.shape().end() - 1));
  check(targets.shape() == expected,
        "cross_entropy: targets must have the shape of the logits without the last dimension, got "
        "{} and logits {}",
        targets.shape(), logits.shape());
  check(targets.device() == logits.device(),
        "cross_entropy: logits and targets are on two devices, got {} and {}; move one",
        logits.device(), targets.device());
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1,
        "cross_entropy: label_smoothing must be in [0, 1], got {}", options.label_smoothing);
  check_targets(logits, targets, options);
}

}  // namespace

Loss cross_entropy(const Tensor& logits, const Tensor& targets,
                   const CrossEntropyOptions& user_options) {
  const OperationTimer timer("cross_entropy");
  check_cross_entropy(logits, targets, user_options);
  const backend::CrossEntropyOptions options{user_options.ignore_index,
                                             user_options.label_smoothing};
  Array statistics = Array::empty({targets.elements(), 2}, logits.dtype(), logits.device());
  const backend::CrossEntropySums sums = on_device(logits.device(), [&](auto on) {
    return backend::cross_entropy(on, statistics, logits.value(), targets.value(), options);
  });
  const auto scalar = [&](double value) {
    return Array::full({}, value, logits.dtype(), logits.device());
  };
  // With q = (1 - label_smoothing) * one_hot(target) + label_smoothing / V:
  // dlogits = dloss * (softmax(logits) - q)
  const Tensor sum =
      record("cross_entropy", scalar(sums.loss), {logits},
             [statistics, logits = Saved(logits.value()), targets = Saved(targets.value()),
              options](const Array& dloss) {
               Array dlogits = Array::like(logits.value());
               on_device(dloss.device(), [&](auto on) {
                 backend::cross_entropy_backward(on, dlogits, dloss, statistics, logits.value(),
                                                 targets.value(), options);
               });
               return Gradients{dlogits};
             });
  return {sum, sums.count, Tensor(scalar(sums.negative_log_likelihood)), sums.correct};
}

}  // namespace gs
