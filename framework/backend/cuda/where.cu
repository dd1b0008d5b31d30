#include "framework/backend/where.h"

#include "framework/backend/cuda/broadcast_reader.cuh"

namespace gs::backend {
namespace {

struct Choose {
  template <typename T>
  __device__ T operator()(bool chosen, T a, T b) const {
    return chosen ? a : b;
  }
};

}  // namespace

void where(Cuda device, Array& y, const Array& condition, const Operand& a, const Operand& b) {
  if (y.elements() == 0) return;
  dispatch_stored(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map("where", device, y.elements(), y.data<T>(), Choose(),
        BroadcastReader<bool>(condition, y.shape()), BroadcastReader<T>(a, y.shape()),
        BroadcastReader<T>(b, y.shape()));
  });
}

}  // namespace gs::backend
