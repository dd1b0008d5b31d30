#include "framework/backend/history_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "framework/core/parallel.h"

// Bound by the latency of loads: each key and value is read once, by one query. Hypotheses of one
// origin read the same rows, which stay in cache.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/history_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// What a row sees, and room for the scores.
template <typename T>
struct Seen {
  std::vector<const T*> keys, values;
  std::vector<T> weights;
};

// The sums of the lanes of four vectors, times `factor`, to the first `count` places of y.
template <class D, class V, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store_sums(D d, V a0, V a1, V a2, V a3, T factor, T* y, int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  HWY_ALIGN T sums[4];
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
  if constexpr (sizeof(T) == 4) {
    // Within each block of four lanes: transpose and add, until lane i holds vector i.
    const hn::Repartition<double, D> dd;
    const auto pair = [&](V a, V b) HWY_ATTR {
      return hn::BitCast(dd, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    const auto a01 = pair(a0, a1), a23 = pair(a2, a3);
    const auto blocks = hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, a01, a23)),
                                hn::BitCast(d, hn::InterleaveUpper(dd, a01, a23)));
    const hn::FixedTag<T, 4> d4;
    const auto fold = [](auto self, auto tag, auto value) HWY_ATTR {
      if constexpr (hn::MaxLanes(decltype(tag)()) == 4) {
        return value;
      } else {
        const hn::Half<decltype(tag)> half;
        return self(self, half, hn::Add(hn::LowerHalf(half, value), hn::UpperHalf(half, value)));
      }
    };
    const auto total = hn::Mul(fold(fold, d, blocks), hn::Set(d4, factor));
    if (count >= 4) {
      hn::StoreU(total, d4, y);
      return;
    }
    hn::Store(total, d4, sums);
    std::copy_n(sums, count, y);
    return;
  }
#endif
  sums[0] = sum_of(d, a0) * factor;
  sums[1] = sum_of(d, a1) * factor;
  sums[2] = sum_of(d, a2) * factor;
  sums[3] = sum_of(d, a3) * factor;
  std::copy_n(sums, std::min<int64_t>(count, 4), y);
}

// The scores of one head against all keys, four at a time; beyond the last it is read again.
template <typename T>
void score(T* scores, const T* query, const std::vector<const T*>& keys, int64_t start,
           int64_t width, T scale) {
  const hn::ScalableTag<T> d;
  const int64_t count = static_cast<int64_t>(keys.size());
  for (int64_t j = 0; j < count; j += 4) {
    const auto key = [&](int64_t i) {
      return keys[static_cast<size_t>(std::min(j + i, count - 1))] + start;
    };
    const T* const k0 = key(0);
    const T* const k1 = key(1);
    const T* const k2 = key(2);
    const T* const k3 = key(3);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for_each_vector(d, width, [&](auto at) HWY_ATTR {
      const auto q = load(d, query, at);
      s0 = hn::MulAdd(q, load(d, k0, at), s0);
      s1 = hn::MulAdd(q, load(d, k1, at), s1);
      s2 = hn::MulAdd(q, load(d, k2, at), s2);
      s3 = hn::MulAdd(q, load(d, k3, at), s3);
    });
    store_sums(d, s0, s1, s2, s3, scale, scores + j, count - j);
  }
}

// Powers of what stands above the maximum, and the inverse of their sum.
template <typename T>
T exponentiate(T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  auto largest = hn::Set(d, kLowest);
  for_each_vector(d, count,
                  [&](auto at) HWY_ATTR { largest = hn::Max(largest, load(d, x, at, kLowest)); });
  const auto shift = hn::Set(d, max_of(d, largest));
  auto total = hn::Zero(d);
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    const auto power = exp_lanes(d, hn::Sub(load(d, x, at, kLowest), shift));
    total = hn::Add(total, inside(d, power, at));
    store(d, power, x, at);
  });
  return 1 / sum_of(d, total);
}

// output = factor * the sum of weights times values.
template <typename T>
void combine(T* output, const T* weights, const std::vector<const T*>& values, int64_t start,
             int64_t width, T factor) {
  const hn::ScalableTag<T> d;
  const size_t count = values.size();
  for_each_vector(d, width, [&](auto at) HWY_ATTR {
    auto even = hn::Zero(d), odd = even;
    size_t j = 0;
    for (; j + 2 <= count; j += 2) {
      even = hn::MulAdd(hn::Set(d, weights[j]), load(d, values[j] + start, at), even);
      odd = hn::MulAdd(hn::Set(d, weights[j + 1]), load(d, values[j + 1] + start, at), odd);
    }
    if (j < count) even = hn::MulAdd(hn::Set(d, weights[j]), load(d, values[j] + start, at), even);
    store(d, hn::Mul(hn::Add(even, odd), hn::Set(d, factor)), output, at);
  });
}

void attend_rows(Array& output, const Array& query, const History& history, int64_t first,
                 int64_t last) {
  dispatch_floating("history_attention", output.dtype(), [&](auto zero) {
    using T = decltype(zero);
    thread_local Seen<T> seen;
    const size_t tokens = history.keys.size();
    const int64_t columns = query.shape()[1], value_columns = output.shape()[1];
    const int64_t width = columns / history.heads, value_width = value_columns / history.heads;
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(width)));
    seen.keys.resize(tokens);
    seen.values.resize(tokens);
    seen.weights.resize(tokens);
    for (int64_t row = first; row < last; ++row) {
      const int32_t* const rows = history.rows.data() + row * static_cast<int64_t>(tokens);
      for (size_t t = 0; t < tokens; ++t) {
        seen.keys[t] = history.keys[t].data<T>() + rows[t] * columns;
        seen.values[t] = history.values[t].data<T>() + rows[t] * value_columns;
      }
      T* const weights = seen.weights.data();
      for (int64_t h = 0; h < history.heads; ++h) {
        score(weights, query.data<T>() + row * columns + h * width, seen.keys, h * width, width,
              scale);
        const T factor = exponentiate(weights, static_cast<int64_t>(tokens));
        combine(output.data<T>() + row * value_columns + h * value_width, weights, seen.values,
                h * value_width, value_width, factor);
      }
    }
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(attend_rows);

}  // namespace

void history_attention(Cpu, Array& output, const Array& query, const History& history) {
  constexpr int64_t kGrain = 1 << 16;  // multiplications
  const int64_t work =
      (query.shape()[1] + output.shape()[1]) * static_cast<int64_t>(history.keys.size());
  parallel_for(0, query.shape()[0], kGrain / std::max<int64_t>(1, work) + 1,
               [&](int64_t first, int64_t last) {
                 HWY_DYNAMIC_DISPATCH(attend_rows)(output, query, history, first, last);
               });
}

}  // namespace gs::backend
#endif
