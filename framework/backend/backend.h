#pragma once

#include "framework/core/device.h"
#include "framework/core/error.h"

namespace gs {

// Tags that choose a kernel's overload. Every kernel of framework/backend/ takes one first.
struct Cpu {};
struct Cuda {
  int index = 0;
};

#ifdef GS_WITH_CUDA
inline constexpr bool kWithCuda = true;
#else
inline constexpr bool kWithCuda = false;
#endif

namespace backend {
int device_count(Cuda);
}

// How many CUDA devices can be used: 0 where the build or the machine has no CUDA.
inline int cuda_device_count() {
  if constexpr (kWithCuda) return backend::device_count(Cuda{});
  return 0;
}

// Calls `function` with the tag of the device: the one place where a backend is chosen.
template <typename Function>
auto on_device(Device device, Function&& function) {
  if constexpr (kWithCuda) {
    if (device.kind == Device::Kind::kCuda) return function(Cuda{device.index});
  }
  check(device.kind == Device::Kind::kCpu, "device {}: this build has no CUDA; use cpu", device);
  return function(Cpu{});
}

}  // namespace gs
