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

}  // namespace

void scale(Cuda device, Array& y, const Array& x, double factor) {
  if (x.elements() == 0) return;
  dispatch_element("scale", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("scale", device, grid_of(x.elements()), scale_kernel<T>, elements_of<T>(y),
           elements_of<T>(x), static_cast<Compute<T>>(factor), x.elements());
  });
}

}  // namespace gs::backend
