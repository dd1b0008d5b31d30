#include "framework/backend/elementwise_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/elementwise_loss.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory; the logistic loss by its exponentials.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

double squares(const Array& x, const Array& target, int64_t first, int64_t last) {
  return dispatch_floating("mse_loss", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const hn::ScalableTag<T> d;
    // In single precision each lane sums so few that no digits are lost, however few lanes.
    const int64_t short_sum = 16 * static_cast<int64_t>(hn::Lanes(d));
    double total = 0;
    for (int64_t start = first; start < last; start += short_sum) {
      const T* const a = x.data<T>() + start;
      const T* const b = target.data<T>() + start;
      auto sum = hn::Zero(d);
      for_each_vector(d, HWY_MIN(short_sum, last - start), [&](auto at) HWY_ATTR {
        const auto difference = hn::Sub(load(d, a, at), load(d, b, at));
        sum = hn::MulAdd(difference, difference, sum);
      });
      total += static_cast<double>(sum_of(d, sum));
    }
    return total;
  });
}

// max(x, 0) - x * target + log(1 + exp(-|x|)): no term overflows.
double binary_losses(const Array& x, const Array& target, int64_t first, int64_t last) {
  return dispatch_floating("binary_cross_entropy_with_logits", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    double sum = 0;
    for (int64_t i = first; i < last; ++i) {
      const double logit = x.data<T>()[i], share = target.data<T>()[i];
      sum += (logit < 0 ? 0 : logit) - logit * share + std::log1p(std::exp(-std::abs(logit)));
    }
    return sum;
  });
}

void square_gradients(Array& dx, const Array& dloss, const Array& x, const Array& target,
                      int64_t first, int64_t last) {
  dispatch_floating("mse_loss", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T factor = 2 * dloss.data<T>()[0];
    for (int64_t i = first; i < last; ++i)
      dx.data<T>()[i] = factor * (x.data<T>()[i] - target.data<T>()[i]);
  });
}

// sigmoid(x) - target, with sigmoid(x) = 1 / (1 + exp(-x)): infinity in the denominator gives 0.
void binary_gradients(Array& dx, const Array& dloss, const Array& x, const Array& target,
                      int64_t first, int64_t last) {
  dispatch_floating("binary_cross_entropy_with_logits", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const hn::ScalableTag<T> d;
    const auto one = hn::Set(d, T{1}), factor = hn::Set(d, dloss.data<T>()[0]);
    for_each_vector(d, last - first, [&](auto at) HWY_ATTR {
      const auto power = exp_lanes(d, hn::Neg(load(d, x.data<T>() + first, at)));
      const auto sigmoid = hn::Div(one, hn::Add(one, power));
      const auto difference = hn::Sub(sigmoid, load(d, target.data<T>() + first, at));
      store(d, hn::Mul(factor, difference), dx.data<T>() + first, at);
    });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(squares);
HWY_EXPORT(binary_losses);
HWY_EXPORT(square_gradients);
HWY_EXPORT(binary_gradients);

// Pieces of a fixed size, so that the sums do not depend on the number of threads.
constexpr int64_t kPiece = 1 << 12, kGrain = 1 << 14;

template <class Sum>
Array sum_pieces(Sum sum, const Array& x, const Array& target) {
  const int64_t elements = x.elements(), pieces = (elements + kPiece - 1) / kPiece;
  std::vector<double> parts(static_cast<size_t>(pieces));
  parallel_for(0, pieces, kGrain / kPiece, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      parts[static_cast<size_t>(i)] =
          sum(x, target, i * kPiece, std::min(elements, (i + 1) * kPiece));
    }
  });
  double total = 0;
  for (const double part : parts) total += part;
  return Array::full({}, total, kFloat64);
}

}  // namespace

Array mse_loss(Cpu, const Array& x, const Array& target) {
  return sum_pieces(HWY_DYNAMIC_DISPATCH(squares), x, target);
}

Array binary_cross_entropy(Cpu, const Array& x, const Array& target) {
  return sum_pieces(HWY_DYNAMIC_DISPATCH(binary_losses), x, target);
}

void mse_loss_backward(Cpu, Array& dx, const Array& dloss, const Array& x, const Array& target) {
  parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(square_gradients)(dx, dloss, x, target, first, last);
  });
}

void binary_cross_entropy_backward(Cpu, Array& dx, const Array& dloss, const Array& x,
                                   const Array& target) {
  parallel_for(0, x.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(binary_gradients)(dx, dloss, x, target, first, last);
  });
}

void binary_cross_entropy_target_backward(Cpu, Array& dtarget, const Array& dloss, const Array& x) {
  dispatch_floating("binary_cross_entropy_with_logits", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T factor = -dloss.data<T>()[0];
    const T* const in = x.data<T>();
    T* const out = dtarget.data<T>();
    for (int64_t i = 0; i < x.elements(); ++i) out[i] = factor * in[i];
  });
}

}  // namespace gs::backend
#endif
