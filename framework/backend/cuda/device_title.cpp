#include "framework/backend/device_title.h"

#include "framework/backend/cuda/runtime.h"

namespace gs::backend {

std::string device_title(Cuda device) {
  stream_of(device);  // refuses a device that is not there
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace gs::backend
