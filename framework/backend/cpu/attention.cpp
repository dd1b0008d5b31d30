// Bound by arithmetic: of products of 10 to 100 rows and columns, whose operands are in cache, and
// of the exponential functions.
#include "framework/backend/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "framework/backend/cpu/attention_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/attention_products-inl.h"
#include "framework/backend/cpu/attention_rows-inl.h"
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

// So many queries are finished before the next ones, which keeps their weights in cache.
constexpr int64_t kQueries = kFoldedRows;

// Rows of weights of some queries: in scratch memory, in whole vectors, and those to keep, `width`
// each; dropout's factors. The last two may be null.
template <typename T>
struct Weights {
  Matrix<T> scratch;
  T* kept;
  const T* factors;
  int64_t width;
};

// The softmax of the first visible(i) elements of each row of the scratch in place, kept before
// dropout; the other elements become 0. Without one above -infinity all are 0. Goes over all rows
// in each of three steps, since what one row needs to be summed up takes longer than to compute.
template <typename T, typename Visible>
HWY_INLINE void softmax_rows(const Weights<T>& weights, int64_t rows, const Visible& visible) {
  const hn::ScalableTag<T> d;
  const auto lowest = hn::Set(d, -kInfinity<T>), zero = hn::Zero(d);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN T partial[kFoldedRows * hn::MaxLanes(d)];
  HWY_ALIGN T maximum[kFoldedRows] = {};
  HWY_ALIGN T total[kFoldedRows] = {};
  for (int64_t i = 0; i < rows; ++i) {
    const T* const x = weights.scratch.row(i);
    auto largest = lowest;
    for_each_vector(d, visible(i), [&](auto at) HWY_ATTR {
      largest = hn::Max(largest, inside_or(d, load(d, x, whole(at)), at, lowest));
    });
    hn::Store(largest, d, partial + i * lanes);
  }
  max_lanes(d, partial, rows, maximum);
  for (int64_t i = 0; i < rows; i += lanes) {
    // Of a row without anything to see the powers are 0.
    const auto value = hn::Load(d, maximum + i);
    hn::Store(hn::IfThenElse(hn::Eq(value, lowest), zero, value), d, maximum + i);
  }
  for (int64_t i = 0; i < rows; ++i) {
    T* const x = weights.scratch.row(i);
    const auto shift = hn::Set(d, maximum[i]);
    auto sum = zero;
    for_each_vector(d, visible(i), [&](auto at) HWY_ATTR {
      const auto value = exp_of_nonpositive_lanes(d, hn::Sub(load(d, x, whole(at)), shift));
      sum = hn::Add(sum, inside(d, value, at));
      store(d, value, x, whole(at));
    });
    hn::Store(sum, d, partial + i * lanes);
  }
  sum_lanes(d, partial, rows, total);
  for (int64_t i = 0; i < rows; i += lanes) {
    const auto value = hn::Load(d, total + i);
    hn::Store(hn::IfThenElse(hn::Eq(value, zero), zero, hn::Div(hn::Set(d, T{1}), value)), d,
              total + i);
  }
  for (int64_t i = 0; i < rows; ++i) {
    T* const x = weights.scratch.row(i);
    const int64_t count = visible(i);
    const auto factor = hn::Set(d, total[i]);
    for_each_vector(d, weights.width, [&](auto at) HWY_ATTR {
      // The factor may be NaN, which must not reach the others.
      auto value = hn::Mul(load(d, x, whole(at)), factor);
      if (at.start + lanes > count) value = hn::IfThenElseZero(before(d, whole(at), count), value);
      if (weights.kept != nullptr) store(d, value, weights.kept + i * weights.width, at);
      if (weights.factors != nullptr)
        value = drop(d, value, load(d, weights.factors + i * weights.width, at));
      store(d, value, x, whole(at));
    });
  }
}

template <typename T>
void attend(T* output, T* kept, const AttentionInputs& inputs, const AttentionPlan& plan,
            const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t width = sequence.weights_width, stride = padded<T>(width);
  const Matrix<T> weights{attention_scratch<T, 0>(std::min(kQueries, sequence.queries) * stride),
                          stride};
  const Matrix<const T> key = part_of(inputs.key.data<T>(), sequence.key_start, head, plan.width);
  const Matrix<const T> value =
      part_of(inputs.value.data<T>(), sequence.key_start, head, plan.value_width);
  const Terms<T> key_terms = transposed_terms_of(key, sequence.keys, plan.width);
  prefetch_next(inputs.key.data<T>(), sequence.key_start, head, sequence.keys, plan.width);
  const Terms<T> value_terms = terms_of(value, sequence.keys, plan.value_width);
  const T* factors = plan.drops() ? dropout_factors<T>(head, plan.dropout) : nullptr;
  T* const block = kept != nullptr ? kept + head.weights_start() : nullptr;
  for (int64_t first = 0; first < sequence.queries; first += kQueries) {
    const int64_t count = std::min(kQueries, sequence.queries - first);
    const int64_t row = sequence.query_start + first;
    const Matrix<const T> query = part_of(inputs.query.data<T>(), row, head, plan.width);
    multiply<false>(
        Product<T>{
            {query.data, query.stride, 1}, key_terms, weights, stride, static_cast<T>(plan.scale)},
        count, [&](int64_t, int64_t last) {
          return Extent{0, plan.width, head.visible(plan, first + last)};
        });
    prefetch_next(inputs.query.data<T>(), row, head, count, plan.width);
    const auto visible = [&](int64_t i) { return head.visible(plan, first + i); };
    for (int64_t i = 0; i < count; ++i)
      apply_masks(weights.row(i), visible(i), inputs, plan, head, first + i);
    softmax_rows(Weights<T>{weights, block != nullptr ? block + first * width : nullptr,
                            factors != nullptr ? factors + first * width : nullptr, width},
                 count, visible);
    if (first == 0)
      prefetch_next(inputs.value.data<T>(), sequence.key_start, head, sequence.keys,
                    plan.value_width);
    multiply<true>(Product<T>{{weights.data, stride, 1},
                              value_terms,
                              part_of(output, row, head, plan.value_width),
                              plan.value_width,
                              1},
                   count, [&](int64_t, int64_t last) {
                     return Extent{0, head.visible(plan, first + last), plan.value_width};
                   });
  }
}

// The heads whose place lies in [first, last).
void attend_heads(AttentionResults& results, const AttentionInputs& inputs,
                  const AttentionPlan& plan, int64_t first, int64_t last) {
  dispatch_floating("attention", results.output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for_each_head(plan, first, last, [&](const AttentionHead& head) {
      attend(results.output.data<T>(), data_or_null<T>(results.weights), inputs, plan, head);
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

void place_sequences(Cpu, AttentionPlan& plan) {
  if (plan.table.defined())
    std::memcpy(plan.sequences.data(), plan.table.raw(), static_cast<size_t>(plan.table.bytes()));
}

void attention(Cpu, AttentionResults& results, const AttentionInputs& inputs,
               const AttentionPlan& plan) {
  split_heads(plan, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(attend_heads)(results, inputs, plan, first, last);
  });
}

}  // namespace gs::backend
#endif
