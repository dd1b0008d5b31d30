#pragma once

#include "framework/backend/cuda/launch.h"
#include "framework/backend/memory.h"

namespace gs::backend {

using Place = unsigned long long;

template <typename T, typename Predicate>
__global__ void first_place_kernel(Place* first, const T* x, int64_t count, Predicate predicate) {
  for (int64_t i = first_element(); i < count; i += element_step()) {
    if (!predicate(x[i])) continue;
    atomicMin(first, static_cast<Place>(i));
    return;
  }
}

// The index of the first element for which the predicate holds, or -1. Waits for the device.
template <typename T, typename Predicate>
int64_t first_place(const char* operation, Cuda device, const T* x, int64_t count,
                    Predicate predicate) {
  if (count == 0) return -1;
  const Memory first(Device::cuda(device.index), sizeof(Place));
  check_cuda(cudaMemsetAsync(first.data(), 0xff, sizeof(Place), stream_of(device)), operation);
  launch(operation, device, grid_of(count, 4), first_place_kernel<T, Predicate>,
         static_cast<Place*>(first.data()), x, count, predicate);
  int64_t place = 0;  // all bits set stand for -1
  copy_to_host(device, &place, first.data(), sizeof place);
  return place;
}

}  // namespace gs::backend
