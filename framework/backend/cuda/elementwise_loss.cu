#include "framework/backend/elementwise_loss.h"

#include <cmath>

#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/broadcast_reader.cuh"
#include "framework/backend/reduce.h"

// Bound by memory; the logistic loss by its functions in double precision.
namespace gs::backend {
namespace {

struct Square {
  template <typename T>
  __device__ double operator()(T x, T target) const {
    const double difference = static_cast<double>(x - target);
    return difference * difference;
  }
};

// max(x, 0) - x * target + log(1 + exp(-|x|)): no term overflows.
struct BinaryLoss {
  template <typename T>
  __device__ double operator()(T x, T target) const {
    const double logit = static_cast<double>(x), share = static_cast<double>(target);
    return (logit < 0 ? 0 : logit) - logit * share + std::log1p(std::exp(-std::abs(logit)));
  }
};

struct SquareGradient {
  template <typename T>
  __device__ T operator()(T dloss, T x, T target) const {
    return 2 * dloss * (x - target);
  }
};

// sigmoid(x) - target, with sigmoid(x) = 1 / (1 + exp(-x)): infinity in the denominator gives 0.
struct BinaryGradient {
  template <typename T>
  __device__ T operator()(T dloss, T x, T target) const {
    return dloss * (T(1) / (T(1) + std::exp(-x)) - target);
  }
};

struct TargetGradient {
  template <typename T>
  __device__ T operator()(T dloss, T x) const {
    return -dloss * x;
  }
};

template <typename T, typename Term>
__global__ void sum_kernel(double* parts, const T* x, const T* target, int64_t count, Term term) {
  __shared__ double scratch[kWarp];
  double sum = 0;
  for (int64_t i = first_element(); i < count; i += element_step())
    sum += term(load(x + i), load(target + i));
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// One part a block, so that the order depends on the size alone.
template <typename Term>
Array sum_of(const char* operation, Cuda device, const Array& x, const Array& target, Term term) {
  constexpr int64_t kMostParts = 1024, kElementsPerThread = 8;
  if (x.elements() == 0) return Array::zeros({}, kFloat64, x.device());
  const int64_t per_part = kThreads * kElementsPerThread;
  const int64_t count = std::min(kMostParts, (x.elements() + per_part - 1) / per_part);
  Array total = Array::empty({}, kFloat64, x.device());
  Array parts = Array::empty({count}, kFloat64, x.device());
  dispatch_element(operation, x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Grid grid{dim3(static_cast<unsigned>(count)), dim3(kThreads)};
    launch(operation, device, grid, sum_kernel<T, Term>, parts.data<double>(), elements_of<T>(x),
           elements_of<T>(target), x.elements(), term);
  });
  sum(device, total, parts, Rows{1, count, 1});
  return total;
}

template <typename Function, typename... Arrays>
void gradient(const char* operation, Cuda device, Array& dx, const Array& dloss, Function function,
              const Arrays&... x) {
  dispatch_element(operation, dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map(operation, device, dx.elements(), elements_of<T>(dx), function,
        BroadcastReader<T>(dloss.reshaped({}), dx.shape()), elements_of<T>(x)...);
  });
}

}  // namespace

Array mse_loss(Cuda device, const Array& x, const Array& target) {
  return sum_of("mse_loss", device, x, target, Square());
}

void mse_loss_backward(Cuda device, Array& dx, const Array& dloss, const Array& x,
                       const Array& target) {
  gradient("mse_loss", device, dx, dloss, SquareGradient(), x, target);
}

Array binary_cross_entropy(Cuda device, const Array& x, const Array& target) {
  return sum_of("binary_cross_entropy_with_logits", device, x, target, BinaryLoss());
}

void binary_cross_entropy_backward(Cuda device, Array& dx, const Array& dloss, const Array& x,
                                   const Array& target) {
  gradient("binary_cross_entropy_with_logits", device, dx, dloss, BinaryGradient(), x, target);
}

void binary_cross_entropy_target_backward(Cuda device, Array& dtarget, const Array& dloss,
                                          const Array& x) {
  gradient("binary_cross_entropy_with_logits", device, dtarget, dloss, TargetGradient(), x);
}

}  // namespace gs::backend
