#include "framework/backend/scale.h"

#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/launch.h"

namespace gs::backend {
namespace {

template <typename T>
__global__ void scale_kernel(T* y, const T* x, Compute<T> factor, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step())
    store(y + i, load(x + i) * factor);
}

template <typename T>
__global__ void scale_by_kernel(T* y, const T* x, const Compute<T>* factor, int64_t count) {
  const Compute<T> by = *factor;
  if (by == 1 && y == x) return;
  for (int64_t i = first_element(); i < count; i += element_step()) store(y + i, load(x + i) * by);
}

template <typename T>
__global__ void average_kernel(T* y, const T* x, const double* count, int64_t elements) {
  const Compute<T> by = static_cast<Compute<T>>(*count == 0 ? 0 : 1 / *count);
  for (int64_t i = first_element(); i < elements; i += element_step())
    store(y + i, load(x + i) * by);
}

}  // namespace

void scale(Cuda device, Array& y, const Array& x, double factor) {
  if (x.elements() == 0) return;
  dispatch_element("scale", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("scale", device, grid_of(x.elements()), scale_kernel<T>, elements_of<T>(y),
           elements_of<T>(x), static_cast<Compute<T>>(factor), x.elements());
  });
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
  if (x.elements() == 0) return;
  dispatch_element("average", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("average", device, grid_of(x.elements()), average_kernel<T>, elements_of<T>(y),
           elements_of<T>(x), count.data<double>(), x.elements());
  });
}

}  // namespace gs::backend
