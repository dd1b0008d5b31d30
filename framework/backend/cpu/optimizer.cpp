#include "framework/backend/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/optimizer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Bound by memory: each array is read and written once. The loops below become vectors of the
// instruction set that each is compiled for.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

// Kingma and Ba, 2015, algorithm 1 (epsilon outside of the corrected root); Loshchilov and Hutter,
// 2019, for the decoupled decay.
template <typename T>
void adam_range(T* HWY_RESTRICT weight, T* HWY_RESTRICT first, T* HWY_RESTRICT second,
                const T* HWY_RESTRICT gradient, const AdamStep& step, int64_t begin, int64_t end) {
  const T beta1 = static_cast<T>(step.beta1), beta2 = static_cast<T>(step.beta2);
  const T rest1 = static_cast<T>(1 - step.beta1), rest2 = static_cast<T>(1 - step.beta2);
  const T keep = static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.decay : 1);
  const T added = static_cast<T>(step.decoupled ? 0 : step.decay);
  const T rate = static_cast<T>(step.learning_rate / step.correction1);
  const T root_scale = static_cast<T>(1 / std::sqrt(step.correction2));
  const T epsilon = static_cast<T>(step.epsilon);
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] + added * weight[i];
    first[i] = beta1 * first[i] + rest1 * g;
    second[i] = beta2 * second[i] + rest2 * g * g;
    weight[i] = keep * weight[i] - rate * first[i] / (std::sqrt(second[i]) * root_scale + epsilon);
  }
}

template <typename T>
void sgd_range(T* HWY_RESTRICT weight, T* HWY_RESTRICT velocity, const T* HWY_RESTRICT gradient,
               const SgdStep& step, int64_t begin, int64_t end) {
  const T rate = static_cast<T>(step.learning_rate), decay = static_cast<T>(step.decay);
  const T momentum = static_cast<T>(step.momentum);
  if (velocity == nullptr) {
    for (int64_t i = begin; i < end; ++i) weight[i] -= rate * (gradient[i] + decay * weight[i]);
    return;
  }
  const T ahead = step.nesterov ? T(1) : T(0), along = step.nesterov ? momentum : T(1);
  for (int64_t i = begin; i < end; ++i) {
    const T g = gradient[i] + decay * weight[i];
    velocity[i] = momentum * velocity[i] + g;
    weight[i] -= rate * (ahead * g + along * velocity[i]);
  }
}

void adam_slice(Array& weight, Array& first, Array& second, const Array& gradient,
                const AdamStep& step, int64_t begin, int64_t end) {
  dispatch_floating("adam", weight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    adam_range(weight.data<T>(), first.data<T>(), second.data<T>(), gradient.data<T>(), step, begin,
               end);
  });
}

void sgd_slice(Array& weight, Array& velocity, const Array& gradient, const SgdStep& step,
               int64_t begin, int64_t end) {
  dispatch_floating("sgd", weight.dtype(), [&](auto zero) {
    using T = decltype(zero);
    sgd_range(weight.data<T>(), velocity.defined() ? velocity.data<T>() : nullptr,
              gradient.data<T>(), step, begin, end);
  });
}

double squares_slice(const Array& x, int64_t begin, int64_t end) {
  return dispatch_floating("sum_of_squares", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* const in = x.data<T>();
    double lanes[8] = {};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (int64_t lane = 0; lane < 8; ++lane) {
        const double value = static_cast<double>(in[i + lane]);
        lanes[lane] += value * value;
      }
    }
    double sum = 0;
    for (; i < end; ++i) sum += static_cast<double>(in[i]) * static_cast<double>(in[i]);
    for (const double lane : lanes) sum += lane;
    return sum;
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(adam_slice);
HWY_EXPORT(sgd_slice);
HWY_EXPORT(squares_slice);

constexpr int64_t kGrain = 1 << 14;

}  // namespace

void adam(Cpu, Array& weight, Array& first_moment, Array& second_moment, const Array& gradient,
          const AdamStep& step) {
  parallel_for(0, weight.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(adam_slice)
    (weight, first_moment, second_moment, gradient, step, begin, end);
  });
}

void sgd(Cpu, Array& weight, Array& velocity, const Array& gradient, const SgdStep& step) {
  parallel_for(0, weight.elements(), kGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(sgd_slice)(weight, velocity, gradient, step, begin, end);
  });
}

double sum_of_squares(Cpu, const Array& x) {
  const int64_t blocks = (x.elements() + kGrain - 1) / kGrain;
  std::vector<double> sums(static_cast<size_t>(blocks));
  parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      sums[static_cast<size_t>(b)] = HWY_DYNAMIC_DISPATCH(squares_slice)(
          x, b * kGrain, std::min(x.elements(), (b + 1) * kGrain));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace gs::backend
#endif
