#include "framework/backend/scale.h"

#include "framework/backend/broadcast.h"
#include "framework/backend/cuda/map.cuh"

namespace gs::backend {
namespace {

// The factor is mostly the 1 that a pass backwards begins with: then nothing moves in place.
template <typename T>
__global__ void scale_by_kernel(T* y, const T* x, const Compute<T>* factor, int64_t count) {
  const Compute<T> by = *factor;
  if (by == 1 && y == x) return;
  for (int64_t i = first_element(); i < count; i += element_step()) store(y + i, load(x + i) * by);
}

struct Share {
  const double* count;
  template <typename T>
  __device__ T operator()(T x) const {
    return x * static_cast<T>(*count == 0 ? 0 : 1 / *count);
  }
};

}  // namespace

void scale(Cuda device, Array& y, const Array& x, double factor) {
  broadcast(device, y, x, factor);
}

void scale_by(Cuda device, Array& y, const Array& x, const Array& factor) {
  if (x.elements() == 0) return;
  dispatch_element("scale", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    constexpr DType kType = dtype_of<Compute<T>>;
    const Array by = factor.dtype() == kType ? factor : factor.to(kType);
    launch("scale", device, grid_of(x.elements()), scale_by_kernel<T>, elements_of<T>(y),
           elements_of<T>(x), by.data<Compute<T>>(), x.elements());
  });
}

void average(Cuda device, Array& y, const Array& x, const Array& count) {
  dispatch_element("average", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map("average", device, x.elements(), elements_of<T>(y), Share{count.data<double>()},
        elements_of<T>(x));
  });
}

}  // namespace gs::backend
