#include "framework/backend/indices.h"

#include "framework/backend/cuda/first_place.cuh"

namespace gs::backend {

int64_t first_outside(Cuda device, const Array& indices, int64_t size,
                      std::optional<int64_t> allowed) {
  return first_place("first_outside", device, indices.data<int32_t>(), indices.elements(),
                     IsOutside(size, allowed));
}

}  // namespace gs::backend
