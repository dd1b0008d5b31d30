#include "framework/backend/device_title.h"

#include "framework/backend/cuda/runtime.h"

namespace gs::backend {

std::string device_title(Cuda device) {
  stream_of(device);  // refuses a device that is not there
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "cudaGetDeviceProperties");
  return properties.name;
}

std::string no_device_reason(Cuda device) {
  int count = 0, driver = 0, runtime = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  cudaGetLastError();  // so that the next call does not report it once more
  return no_device_reason(device, error, driver, runtime);
}

std::string no_device_reason(Cuda, int error, int driver, int runtime) {
  const auto code = static_cast<cudaError_t>(error);
  if (code == cudaErrorInsufficientDriver && driver > 0) {
    const auto version = [](int number) {
      return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
    };
    return fmt::format(
        "the driver is one for CUDA {}, where {} is needed; install a newer driver, or use cpu",
        version(driver), version(runtime));
  }
  if (code == cudaSuccess || code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver)
    return "no CUDA device is visible; use cpu";
  return fmt::format("no CUDA device can be used: {}; look at nvidia-smi, or use cpu",
                     cudaGetErrorString(code));
}

}  // namespace gs::backend
