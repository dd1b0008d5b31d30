#include "framework/backend/cuda/runtime.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "framework/backend/device_title.h"

namespace gs::backend {
namespace {

constexpr int kMostDevices = 64;
thread_local bool is_capturing = false;

struct DeviceState {
  std::once_flag once;
  cudaStream_t stream = nullptr;
};

// Never destroyed: arrays with static lifetime may outlive any other static object.
DeviceState& state_of(int index) {
  static auto& states = *new std::array<DeviceState, kMostDevices>;
  return states[static_cast<size_t>(index)];
}

void open(Cuda device) {
  DeviceState& state = state_of(device.index);
  check_cuda(cudaStreamCreateWithFlags(&state.stream, cudaStreamNonBlocking), "cudaStreamCreate");
}

}  // namespace

void check_cuda(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // so that the next call does not report it once more
  fail("{}: CUDA error {} ({}) at {}:{}", call, static_cast<int>(status),
       cudaGetErrorString(status), file, line);
}

int device_count(Cuda) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return std::min(count, kMostDevices);
  cudaGetLastError();  // no driver, no device: not an error of later calls
  return 0;
}

cudaStream_t stream_of(Cuda device) {
  thread_local int current = -1;
  if (current != device.index) {
    const int count = device_count(device);
    if (count == 0) fail("device cuda:{}: {}", device.index, no_device_reason(device));
    check(device.index >= 0 && device.index < count,
          "device cuda:{}: the visible CUDA devices are cuda:0 to cuda:{}; use one of them",
          device.index, count - 1);
    check_cuda(cudaSetDevice(device.index), "cudaSetDevice");
    std::call_once(state_of(device.index).once, open, device);
    current = device.index;
  }
  return state_of(device.index).stream;
}

bool capturing() { return is_capturing; }
void set_capturing(bool capturing) { is_capturing = capturing; }

}  // namespace gs::backend
