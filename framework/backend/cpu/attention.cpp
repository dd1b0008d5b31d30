#include "framework/backend/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/backend/cpu/attention_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/attention_products-inl.h"
#include "framework/backend/cpu/exp_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Adds the additive scores and blocks what the mask forbids, in the first `count` elements of row
// i of the scores x.
template <typename T>
void apply_masks(T* HWY_RESTRICT x, int64_t count, const AttentionInputs& inputs,
                 const AttentionPlan& plan, const AttentionHead& head, int64_t i) {
  const auto start_of = [&](const std::array<int64_t, 4>& strides) {
    return head.index * strides[0] + head.head * strides[1] + i * strides[2];
  };
  if (inputs.scores.defined()) {
    const T* const scores = inputs.scores.data<T>() + start_of(plan.scores_strides);
    const int64_t stride = plan.scores_strides[3];
    for (int64_t j = 0; j < count; ++j) x[j] += scores[j * stride];
  }
  if (inputs.mask.defined()) {
    const bool* const mask = inputs.mask.data<bool>() + start_of(plan.mask_strides);
    const int64_t stride = plan.mask_strides[3];
    for (int64_t j = 0; j < count; ++j) x[j] = mask[j * stride] ? x[j] : -kInfinity<T>;
  }
}

// The softmax of the first `count` elements of a row in place; the others, up to the whole vectors
// of `stride`, become 0. Without an element above -infinity all are 0.
template <typename T>
HWY_INLINE void softmax_row(T* x, int64_t count, int64_t stride) {
  const hn::ScalableTag<T> d;
  std::fill(x + padded<T>(count), x + stride, T{0});
  if (count == 0) return;
  auto largest = hn::Set(d, -kInfinity<T>);
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    largest = hn::Max(largest, load(d, x, at, -kInfinity<T>));
  });
  const T maximum = max_of(d, largest);
  // A maximum may pass over NaN, which must not look like a masked row.
  if (maximum == -kInfinity<T> &&
      std::none_of(x, x + count, [](T value) { return std::isnan(value); })) {
    std::fill_n(x, padded<T>(count), T{0});
    return;
  }
  const auto shift = hn::Set(d, maximum);
  auto total = hn::Zero(d);
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    const auto value = exp_lanes(d, hn::Sub(load(d, x, at, -kInfinity<T>), shift));
    const auto counted = inside(d, value, at);
    total = hn::Add(total, counted);
    store(d, counted, x, whole(at));
  });
  const auto factor = hn::Set(d, 1 / sum_of(d, total));
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    store(d, inside(d, hn::Mul(load(d, x, whole(at)), factor), at), x, whole(at));
  });
}

template <typename T>
void attend(T* output, T* kept, const AttentionInputs& inputs, const AttentionPlan& plan,
            const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t queries = sequence.queries, width = sequence.weights_width;
  const int64_t stride = padded<T>(width);
  const Matrix<T> weights{attention_scratch<T, 0>(queries * stride), stride};
  multiply_rows(weights, part_of(inputs.query.data<T>(), sequence.query_start, head, plan.width),
                part_of(inputs.key.data<T>(), sequence.key_start, head, plan.width), queries,
                plan.width, static_cast<T>(plan.scale),
                [&](int64_t i) { return head.visible(plan, i); });
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t count = head.visible(plan, i);
    apply_masks(weights.row(i), count, inputs, plan, head, i);
    softmax_row(weights.row(i), count, stride);
  }
  if (kept != nullptr) {
    T* const block = kept + head.weights_start();
    for (int64_t i = 0; i < queries; ++i) std::copy_n(weights.row(i), width, block + i * width);
  }
  if (plan.drops()) drop_weights(weights, head, plan.dropout);
  combine_rows(part_of(output, sequence.query_start, head, plan.value_width),
               Coefficients<T>{weights.data, stride, 1},
               part_of(inputs.value.data<T>(), sequence.key_start, head, plan.value_width), queries,
               plan.value_width, [&](int64_t, int64_t last) {
                 return Terms{0, head.visible(plan, last)};
               });
}

// The heads whose place lies in [first, last).
void attend_heads(Array& output, Array& weights, const AttentionInputs& inputs,
                  const AttentionPlan& plan, int64_t first, int64_t last) {
  dispatch_floating("attention", output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_head(plan, first, last, [&](const AttentionHead& head) {
      attend(output.data<T>(), data_or_null<T>(weights), inputs, plan, head);
    });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(attend_heads);

}  // namespace

void attention(Cpu, Array& output, Array& weights, const AttentionInputs& inputs,
               const AttentionPlan& plan) {
  split_heads(plan, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(attend_heads)(output, weights, inputs, plan, first, last);
  });
}

}  // namespace gs::backend
#endif
