#include "framework/backend/broadcast.h"

#include "framework/backend/cuda/broadcast_reader.cuh"

namespace gs::backend {
namespace {

struct Same {
  template <typename T>
  __device__ T operator()(T x) const {
    return x;
  }
};

template <typename T>
struct Multiple {
  T factor;
  __device__ T operator()(T x) const { return x * factor; }
};

}  // namespace

void broadcast(Cuda device, Array& y, const Array& x, double factor) {
  if (y.elements() == 0) return;
  if (factor == 1) {
    return dispatch_stored(y.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map("broadcast_to", device, y.elements(), y.data<T>(), Same(),
          BroadcastReader<T>(x, y.shape()));
    });
  }
  dispatch_element("broadcast_to", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map("broadcast_to", device, y.elements(), elements_of<T>(y),
        Multiple<Compute<T>>{static_cast<Compute<T>>(factor)}, BroadcastReader<T>(x, y.shape()));
  });
}

}  // namespace gs::backend
