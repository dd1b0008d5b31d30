// Bound by arithmetic, like the forward pass.
#include <algorithm>

#include "framework/backend/attention.h"
#include "framework/backend/cpu/attention_heads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/attention_products-inl.h"
#include "framework/backend/cpu/attention_rows-inl.h"

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

// Rows of the weights' gradient of some queries, in scratch memory, in whole vectors; what goes
// with them, `width` each: the weights, dropout's factors or null, the place of dscores or null.
template <typename T>
struct GradientRows {
  Matrix<T> dp;
  const T* p;
  const T* factors;
  T* dscores;
  int64_t width;
};

// With p the weights: ds = p * (dp - sum(p * dp)), 0 where p is 0, whatever dp is. ds * scale takes
// the place of dp, with zeros beyond visible(i). dp is multiplied by the factors before.
template <typename T, typename Visible>
HWY_INLINE void softmax_rows_backward(const GradientRows<T>& a, int64_t rows, T scale,
                                      const Visible& visible) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), factor = hn::Set(d, scale);
  HWY_ALIGN T partial[kFoldedRows * hn::MaxLanes(d)];
  T total[kFoldedRows];
  for (int64_t i = 0; i < rows; ++i) {
    T* const dp = a.dp.row(i);
    auto sum = zero;
    for_each_vector(d, visible(i), [&](auto at) HWY_ATTR {
      const auto weight = load(d, a.p + i * a.width, at);
      auto gradient = load(d, dp, whole(at));
      if (a.factors != nullptr) {
        gradient = drop(d, gradient, load(d, a.factors + i * a.width, at));
        store(d, gradient, dp, whole(at));
      }
      const auto product = hn::Mul(weight, gradient);
      sum = hn::Add(sum, hn::IfThenElse(hn::Eq(weight, zero), zero, product));
    });
    hn::Store(sum, d, partial + i * lanes);
  }
  sum_lanes(d, partial, rows, total);
  for (int64_t i = 0; i < rows; ++i) {
    T* const dp = a.dp.row(i);
    T* const dscores = a.dscores != nullptr ? a.dscores + i * a.width : nullptr;
    const int64_t count = visible(i);
    const auto mean = hn::Set(d, total[i]);
    for_each_vector(d, count, [&](auto at) HWY_ATTR {
      const auto weight = load(d, a.p + i * a.width, at);
      const auto product = hn::Mul(weight, hn::Sub(load(d, dp, whole(at)), mean));
      const auto value = hn::IfThenElse(hn::Eq(weight, zero), zero, product);
      if (dscores != nullptr) store(d, value, dscores, at);
      store(d, hn::Mul(value, factor), dp, whole(at));
    });
    std::fill(dp + padded<T>(count), dp + padded<T>(a.width), T{0});
    if (dscores != nullptr) std::fill(dscores + count, dscores + a.width, T{0});
  }
}

// The gradient of the weights after dropout, or before it where that is what is given; what a
// causal mask hides may hold anything.
template <typename T>
void weights_gradient(Matrix<T> dp, const Backward<T>& a, const AttentionPlan& plan,
                      const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t width = sequence.weights_width;
  if (a.dweights != nullptr) {
    for (int64_t i = 0; i < sequence.queries; ++i)
      std::copy_n(a.dweights + head.weights_start() + i * width, width, dp.row(i));
    return;
  }
  const Matrix<const T> dy = part_of(a.dy, sequence.query_start, head, plan.value_width);
  const Matrix<const T> value = part_of(a.value, sequence.key_start, head, plan.value_width);
  multiply<false>(Product<T>{{dy.data, dy.stride, 1},
                             transposed_terms_of(value, sequence.keys, plan.value_width),
                             dp,
                             dp.stride,
                             1},
                  sequence.queries, [&](int64_t, int64_t last) {
                    return Extent{0, plan.value_width, head.visible(plan, last)};
                  });
}

// y[j] = the sum over the queries i of coefficient(i, j) * x[i], for the keys j of the head; the
// keys that are padding get 0.
template <typename T>
void combine_queries(T* y, Matrix<const T> coefficients, const T* x, int64_t width,
                     const AttentionPlan& plan, const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const Matrix<T> out = part_of(y, sequence.key_start, head, width);
  const Matrix<const T> in = part_of(x, sequence.query_start, head, width);
  multiply<true>(Product<T>{{coefficients.data, 1, coefficients.stride},
                            terms_of(in, sequence.queries, width),
                            out,
                            width,
                            1},
                 sequence.keys, [&](int64_t first, int64_t) {
                   return Extent{head.first_query(plan, first), sequence.queries, width};
                 });
  prefetch_next(x, sequence.query_start, head, sequence.queries, width);
  prefetch_next(y, sequence.key_start, head, sequence.keys, width);
  for (int64_t j = sequence.keys; j < sequence.weights_width; ++j)
    std::fill_n(out.row(j), width, T{0});
}

// dvalue = p'^T dy with p' the weights after dropout
template <typename T>
void value_gradient(const Backward<T>& a, Matrix<const T> p, const T* factors, Matrix<T> scratch,
                    const AttentionPlan& plan, const AttentionHead& head) {
  const hn::ScalableTag<T> d;
  if (factors == nullptr) {
    combine_queries(a.dvalue, p, a.dy, plan.value_width, plan, head);
    return;
  }
  for (int64_t i = 0; i < head.sequence.queries; ++i) {
    for_each_vector(d, p.stride, [&](auto at) HWY_ATTR {
      const auto value = drop(d, load(d, p.row(i), at), load(d, factors + i * p.stride, at));
      store(d, value, scratch.row(i), whole(at));
    });
  }
  combine_queries(a.dvalue, Matrix<const T>{scratch.data, scratch.stride}, a.dy, plan.value_width,
                  plan, head);
}

// ds as in softmax_rows_backward; dquery = scale * ds key, dkey = scale * ds^T query
template <typename T>
void attend_backward(const Backward<T>& a, const AttentionPlan& plan, const AttentionHead& head) {
  const AttentionSequence& sequence = head.sequence;
  const int64_t queries = sequence.queries, width = sequence.weights_width;
  const int64_t stride = padded<T>(width);
  const Matrix<const T> p{a.weights + head.weights_start(), width};
  const Matrix<T> scratch{attention_scratch<T, 0>(queries * stride), stride};
  const T* factors =
      plan.drops() && a.dy != nullptr ? dropout_factors<T>(head, plan.dropout) : nullptr;
  if (a.dvalue != nullptr) value_gradient(a, p, factors, scratch, plan, head);
  if (a.dquery == nullptr && a.dkey == nullptr && a.dscores == nullptr) return;
  weights_gradient(scratch, a, plan, head);
  for (int64_t first = 0; first < queries; first += kFoldedRows) {
    const int64_t start = first * width;
    T* const dscores = a.dscores != nullptr ? a.dscores + head.weights_start() + start : nullptr;
    softmax_rows_backward(GradientRows<T>{{scratch.row(first), stride},
                                          p.row(first),
                                          factors != nullptr ? factors + start : nullptr,
                                          dscores,
                                          width},
                          std::min(kFoldedRows, queries - first), static_cast<T>(plan.scale),
                          [&](int64_t i) { return head.visible(plan, first + i); });
  }
  if (a.dquery != nullptr) {
    const Matrix<const T> key = part_of(a.key, sequence.key_start, head, plan.width);
    multiply<true>(Product<T>{{scratch.data, stride, 1},
                              terms_of(key, sequence.keys, plan.width),
                              part_of(a.dquery, sequence.query_start, head, plan.width),
                              plan.width,
                              1},
                   queries, [&](int64_t, int64_t last) {
                     return Extent{0, head.visible(plan, last), plan.width};
                   });
    prefetch_next(a.key, sequence.key_start, head, sequence.keys, plan.width);
    prefetch_next(a.dquery, sequence.query_start, head, queries, plan.width);
  }
  if (a.dkey != nullptr)
    combine_queries(a.dkey, Matrix<const T>{scratch.data, stride}, a.query, plan.width, plan, head);
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
                        const AttentionInputs& inputs, const AttentionResults& results,
                        const AttentionPlan& plan) {
  split_heads(plan, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(attend_backward_heads)
    (gradients, dy, dweights, inputs, results.weights, plan, first, last);
  });
}

}  // namespace gs::backend
#endif
