#pragma once

#include "framework/backend/copy.h"
#include "framework/backend/cross_entropy.h"
#include "framework/backend/scale.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/index_checks.h"

// What cross_entropy and linear_cross_entropy have in common.
namespace gs {

// Refuses targets and options that do not fit `input`, "logits" or the like, whose rows are to be
// told apart in `classes` classes.
inline void check_targets(const char* operation, const char* name, const Tensor& input,
                          int64_t classes, const Tensor& targets,
                          const CrossEntropyOptions& options) {
  check(targets.dtype() == kInt32, "{}: targets must be int32, got {}; cast them", operation,
        targets.dtype());
  const Shape expected(std::span<const int64_t>(input.shape().begin(), input.shape().end() - 1));
  check(targets.shape() == expected,
        "{}: targets must have the shape of the {} without the last dimension, got {} and {} {}",
        operation, name, targets.shape(), name, input.shape());
  check(targets.device() == input.device(),
        "{}: {} and targets are on two devices, got {} and {}; move one", operation, name,
        input.device(), targets.device());
  check(options.label_smoothing >= 0 && options.label_smoothing <= 1,
        "{}: label_smoothing must be in [0, 1], got {}", operation, options.label_smoothing);
  const int64_t position = first_outside(targets, classes, options.ignore_index);
  if (position < 0) return;
  const int32_t target = targets.values<int32_t>()[static_cast<size_t>(position)];
  if (options.ignore_index) {
    fail("{}: target {} at position {} is outside 0..{} and not the ignored {}", operation, target,
         position, classes - 1, *options.ignore_index);
  }
  fail("{}: target {} at position {} is outside 0..{}", operation, target, position, classes - 1);
}

// The loss of `sums` (see backend::CrossEntropySum), float64 or float32, with gradients that were
// computed together with it, for dloss = 1.
inline Loss loss_with_gradients(const char* operation, const Array& sums,
                                std::initializer_list<Tensor> inputs, Gradients gradients) {
  const auto sum = [&](backend::CrossEntropySum which) {
    Array one = Array::empty({}, kFloat64, sums.device());
    on_device(sums.device(), [&](auto on) {
      backend::copy_blocks(on, one, sums, {1, 1, 0, 1, which, 1});
    });
    return one;
  };
  const DType dtype = inputs.begin()->dtype() == kFloat64 ? kFloat64 : kFloat32;
  auto backward = [gradients = std::move(gradients)](const Array& dloss,
                                                     const Needs& needs) mutable {
    Gradients scaled(gradients.size());
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!needs[i]) continue;
      scaled[i] = needs.last() ? std::move(gradients[i]) : Array::like(gradients[i]);
      const Array& from = needs.last() ? scaled[i] : gradients[i];
      on_device(dloss.device(), [&](auto on) { backend::scale_by(on, scaled[i], from, dloss); });
    }
    return scaled;
  };
  return {record(operation, sum(backend::kLossSum).to(dtype), inputs, std::move(backward)),
          Count(sum(backend::kCountSum)), Tensor(sum(backend::kNegativeLogLikelihoodSum).to(dtype)),
          Count(sum(backend::kCorrectSum))};
}

}  // namespace gs
