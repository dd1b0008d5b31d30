// The emulated device: properties, limits of launches, errors, and what is left at the end.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/cuda_emulation/executor.h"
#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

extern "C" {
extern void* __start___patchable_function_entries[] __attribute__((weak));
extern void* __stop___patchable_function_entries[] __attribute__((weak));
}

namespace gs::cuda_emulation {
namespace {

// Those of compute capability 9.0, but few multiprocessors, so that grids made for a device are
// small.
constexpr int kMultiprocessors = 4;
constexpr int kThreadsOfBlock = 1024;
constexpr int kThreadsOfMultiprocessor = 2048;
constexpr int kSharedBytes = 48 * 1024;        // without asking
constexpr int kSharedBytesOptIn = 227 * 1024;  // for those who ask

struct Device {
  std::recursive_mutex mutex;
  std::map<const void*, size_t> shared_limits;  // of the kernels that asked
};
Device& device() {
  static auto& device = *new Device;
  return device;
}
thread_local cudaError_t last_error = cudaSuccess;

void report_leaks() {
  if (live_device_bytes() == 0 && live_streams() == 0 && live_graphs() == 0) return;
  std::fprintf(stderr,
               "cuda emulation: leak: %zu bytes of device memory, %zu streams and events, "
               "%zu graphs are left\n",
               live_device_bytes(), live_streams(), live_graphs());
  std::_Exit(1);
}

// The kernel's __launch_bounds__, as emulation.h leaves them.
size_t launch_bound(const void* kernel) {
  size_t warps = 0;
  for (void** each = __start___patchable_function_entries;
       each != __stop___patchable_function_entries; ++each) {
    if (*each != kernel) continue;
    constexpr unsigned char kNop = 0x90;
    while (static_cast<const unsigned char*>(kernel)[warps] == kNop) ++warps;
    break;
  }
  return warps > 0 ? warps * 32 : kThreadsOfBlock;
}

size_t shared_limit(const void* kernel) {
  const auto found = device().shared_limits.find(kernel);
  return found == device().shared_limits.end() ? kSharedBytes : found->second;
}

// The limits of the CUDA C++ Programming Guide, "Compute Capabilities".
bool fits(const cudaLaunchConfig_t& config, size_t shared_bytes) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  const size_t threads = size_t{block.x} * block.y * block.z;
  return threads > 0 && threads <= kThreadsOfBlock && block.z <= 64 && grid.x > 0 && grid.y > 0 &&
         grid.z > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535 &&
         config.dynamicSmemBytes <= shared_bytes;
}

const char* text_of(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorLaunchOutOfResources:
      return "too many resources requested for launch";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case cudaErrorGraphExecUpdateFailure:
      return "the graph update was not performed because it included changes which violated "
             "constraints specific to instantiated graph update";
    default:
      return "an error of the emulated device";
  }
}

}  // namespace

Lock::Lock() : lock_(device().mutex) {
  static const bool watched = options().leaks && std::atexit(report_leaks) == 0;
  (void)watched;
}

cudaError_t error(cudaError_t code) { return last_error = code; }

cudaError_t explain(cudaError_t code, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::fprintf(stderr, "cuda emulation: error %d: ", static_cast<int>(code));
  std::vfprintf(stderr, format, list);
  std::fprintf(stderr, "\n");
  va_end(list);
  return error(code);
}

cudaError_t launch(const char* name, const void* kernel, const cudaLaunchConfig_t& config,
                   Work thread) {
  const Lock lock;
  const dim3 grid = config.gridDim, block = config.blockDim;
  const size_t limit = shared_limit(kernel), shared_bytes = config.dynamicSmemBytes;
  if (!fits(config, limit))
    return explain(cudaErrorInvalidConfiguration,
                   "%s: grid (%u,%u,%u), block (%u,%u,%u), %zu bytes of shared memory, of which it "
                   "may have %zu",
                   name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes, limit);
  const size_t bound = launch_bound(kernel);
  if (size_t{block.x} * block.y * block.z > bound)
    return explain(cudaErrorLaunchOutOfResources,
                   "%s: block (%u,%u,%u), more threads than its launch bound of %zu", name, block.x,
                   block.y, block.z, bound);
  return enqueue(config.stream, [name, grid, block, shared_bytes, thread = std::move(thread)] {
    run_grid(name, grid, block, shared_bytes, thread);
  });
}

}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t code) { return text_of(code); }

cudaError_t cudaGetDeviceCount(int* count) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible != nullptr && *visible == '\0';
  *count = hidden ? 0 : 1;
  if (hidden) last_error = cudaErrorNoDevice;
  return hidden ? cudaErrorNoDevice : cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  return index == 0 ? cudaSuccess : error(cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index) {
  if (index != 0) return error(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "CUDA emulated on the CPU");
  properties->major = 9;
  properties->multiProcessorCount = kMultiprocessors;
  properties->maxThreadsPerBlock = kThreadsOfBlock;
  properties->maxThreadsPerMultiProcessor = kThreadsOfMultiprocessor;
  properties->sharedMemPerBlock = kSharedBytes;
  properties->sharedMemPerBlockOptin = kSharedBytesOptIn;
  properties->warpSize = warpSize;
  size_t free = 0;
  return cudaMemGetInfo(&free, &properties->totalGlobalMem);
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const Lock lock;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > kSharedBytesOptIn)
    return explain(cudaErrorInvalidValue, "a kernel may have %d bytes of shared memory, not %d",
                   kSharedBytesOptIn, value);
  device().shared_limits[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
}
