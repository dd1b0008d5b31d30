#include <algorithm>

#include "framework/backend/attention.h"
#include "framework/backend/cpu/attention_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/attention_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Pointers to whole arrays; null where there is none.
template <typename T>
struct Backward {
  T* dquery;
  T* dkey;
  T* dvalue;
  T* dscores;
  const T* dy;
  const T* dweights;
  const T* query;
  const T* key;
  const T* value;
  const T* weights;
};

// With p the weights: dx = p * (dp - sum(p * dp)), in place of dp; 0 where p is 0, whatever dp is.
template <typename T>
HWY_INLINE void softmax_row_backward(T* dp, const T* p, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto zero = hn::Zero(d);
  auto total = zero;
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    const auto weight = load(d, p, at);
    const auto product = hn::Mul(weight, load(d, dp, at));
    total = hn::Add(total, hn::IfThenElse(hn::Eq(weight, zero), zero, product));
  });
  const auto mean = hn::Set(d, sum_of(d, total));
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    const auto weight = load(d, p, at);
    const auto value = hn::Mul(weight, hn::Sub(load(d, dp, at), mean));
    store(d, hn::IfThenElse(hn::Eq(weight, zero), zero, value), dp, at);
  });
}

// The gradient of the weights, before dropout, to dp (queries, weights_width).
template <typename T>
void weights_gradient(T* dp, const Backward<T>& a, const AttentionPlan& plan,
                      const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t width = sequence.weights_width, size = sequence.queries * width;
  if (a.dweights != nullptr) {
    std::copy_n(a.dweights + head.weights_start(), size, dp);
    return;
  }
  multiply_rows(Matrix<T>{dp, width}, part_of(a.dy, sequence.query_start, head, plan.value_width),
                part_of(a.value, sequence.key_start, head, plan.value_width), sequence.queries,
                plan.value_width, T{1}, [&](int64_t i) { return head.visible(plan, i); });
  if (!plan.drops()) return;
  // What no query sees was not computed.
  for (int64_t i = 0; i < sequence.queries; ++i)
    std::fill(dp + i * width + head.visible(plan, i), dp + (i + 1) * width, T{0});
  drop_weights(dp, dp, size, head.weights_start(), plan.dropout);
}

// y[j] = the sum over the queries i of coefficient(i, j) * x[i], for the keys j of the head; the
// keys that are padding get 0.
template <typename T>
void combine_queries(T* y, const T* coefficients, const T* x, int64_t width,
                     const AttentionPlan& plan, const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const Matrix<T> out = part_of(y, sequence.key_start, head, width);
  combine_rows(out, Coefficients<T>{coefficients, 1, sequence.weights_width},
               part_of(x, sequence.query_start, head, width), sequence.keys, width,
               [&](int64_t first, int64_t) {
                 return Terms{head.first_query(plan, first), sequence.queries};
               });
  for (int64_t j = sequence.keys; j < sequence.weights_width; ++j)
    std::fill_n(out.row(j), width, T{0});
}

// dvalue = p'^T dy with p' the weights after dropout; ds as in softmax_row_backward;
// dquery = scale * ds key, dkey = scale * ds^T query
template <typename T>
void attend_backward(const Backward<T>& a, const AttentionPlan& plan, const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t width = sequence.weights_width, size = sequence.queries * width;
  const T* const p = a.weights + head.weights_start();
  if (a.dvalue != nullptr) {
    const T* dropped = p;
    if (plan.drops()) {
      T* const scratch = attention_scratch<T, 1>(size);
      drop_weights(scratch, p, size, head.weights_start(), plan.dropout);
      dropped = scratch;
    }
    combine_queries(a.dvalue, dropped, a.dy, plan.value_width, plan, head);
  }
  if (a.dquery == nullptr && a.dkey == nullptr && a.dscores == nullptr) return;
  T* const ds = attention_scratch<T, 0>(size);
  weights_gradient(ds, a, plan, head);
  for (int64_t i = 0; i < sequence.queries; ++i) {
    T* const row = ds + i * width;
    const int64_t count = head.visible(plan, i);
    softmax_row_backward(row, p + i * width, count);
    std::fill(row + count, row + width, T{0});
    if (a.dscores != nullptr) std::copy_n(row, width, a.dscores + head.weights_start() + i * width);
    for (int64_t j = 0; j < count; ++j) row[j] *= static_cast<T>(plan.scale);
  }
  if (a.dquery != nullptr) {
    combine_rows(part_of(a.dquery, sequence.query_start, head, plan.width),
                 Coefficients<T>{ds, width, 1},
                 part_of(a.key, sequence.key_start, head, plan.width), sequence.queries, plan.width,
                 [&](int64_t, int64_t last) {
                   return Terms{0, head.visible(plan, last)};
                 });
  }
  if (a.dkey != nullptr) combine_queries(a.dkey, ds, a.query, plan.width, plan, head);
}

// The heads whose place lies in [first, last).
void attend_backward_heads(AttentionGradients& gradients, const Array& dy, const Array& dweights,
                           const AttentionInputs& inputs, const Array& weights,
                           const AttentionPlan& plan, int64_t first, int64_t last) {
  dispatch_floating("attention", weights.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Backward<T> a{data_or_null<T>(gradients.dquery),
                        data_or_null<T>(gradients.dkey),
                        data_or_null<T>(gradients.dvalue),
                        data_or_null<T>(gradients.dscores),
                        data_or_null<T>(dy),
                        data_or_null<T>(dweights),
                        inputs.query.data<T>(),
                        inputs.key.data<T>(),
                        inputs.value.data<T>(),
                        weights.data<T>()};
    for_each_head(plan, first, last,
                  [&](const AttentionHead& head) { attend_backward(a, plan, head); });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(attend_backward_heads);

}  // namespace

void attention_backward(Cpu, AttentionGradients& gradients, const Array& dy, const Array& dweights,
                        const AttentionInputs& inputs, const Array& weights,
                        const AttentionPlan& plan) {
  split_heads(plan, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(attend_backward_heads)
    (gradients, dy, dweights, inputs, weights, plan, first, last);
  });
}

}  // namespace gs::backend
#endif
