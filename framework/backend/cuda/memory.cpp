#include "framework/backend/memory.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "framework/backend/cuda/runtime.h"

namespace gs::backend {
namespace {

constexpr int64_t kGranule = 512;
constexpr int64_t kLarge = int64_t{1} << 20;  // blocks from here on come in whole granules of 2 MiB
constexpr int64_t kLargeGranule = int64_t{1} << 21;

// Blocks are handed out and taken back in the order of the one stream that uses them, so that a
// freed one may serve again at once: whatever still runs on it comes before its next use.
class Cache {
 public:
  explicit Cache(Cuda device) : device_(device) {}

  void* take(int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    void* data = take_free(size);
    if (data == nullptr) data = take_new(size);
    check(
        data != nullptr,
        "memory: cannot allocate {} bytes on cuda:{}, {} are in use; use a smaller batch or model",
        bytes, device_.index, figures_.live);
    figures_.live += size;
    figures_.peak = std::max(figures_.peak, figures_.live);
    return data;
  }

  void put(void* data, int64_t bytes) {
    const int64_t size = block_bytes(bytes);
    const std::lock_guard lock(mutex_);
    figures_.live -= size;
    if (!keeps_) {
      check_cuda(cudaFreeAsync(data, stream_of(device_)), "cudaFreeAsync");
      return;
    }
    figures_.cached += size;
    free_[size].push_back(data);
  }

  void release() {
    const std::lock_guard lock(mutex_);
    release_free();
  }

  MemoryFigures figures() {
    const std::lock_guard lock(mutex_);
    return figures_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    figures_.peak = figures_.live;
  }

 private:
  // At most an eighth of a block is lost.
  int64_t block_bytes(int64_t bytes) const {
    if (!keeps_) return bytes;
    const int64_t granule = bytes < kLarge ? kGranule : kLargeGranule;
    return (bytes + granule - 1) / granule * granule;
  }

  void* take_free(int64_t size) {
    const auto found = free_.lower_bound(size);
    if (found == free_.end() || found->first != size || found->second.empty()) return nullptr;
    void* const data = found->second.back();
    found->second.pop_back();
    figures_.cached -= size;
    return data;
  }

  void* take_new(int64_t size) {
    stream_of(device_);
    void* data = nullptr;
    cudaError_t status = cudaMalloc(&data, static_cast<size_t>(size));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      release_free();
      status = cudaMalloc(&data, static_cast<size_t>(size));
    }
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    check_cuda(status, "cudaMalloc");
    return data;
  }

  void release_free() {
    stream_of(device_);
    for (auto& [size, blocks] : free_) {
      for (void* data : blocks) check_cuda(cudaFree(data), "cudaFree");
    }
    free_.clear();
    figures_.cached = 0;
  }

  const Cuda device_;
  // GRADSTONE_CUDA_CACHE=0 allocates each block anew with its exact size, which lets memory
  // checkers see accesses beyond it.
  const bool keeps_ = [] {
    const char* const wish = std::getenv("GRADSTONE_CUDA_CACHE");
    return wish == nullptr || std::string_view(wish) != "0";
  }();
  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> free_;  // by size
  MemoryFigures figures_;
};

// Never destroyed: arrays with static lifetime may outlive any other static object.
Cache& cache_of(Cuda device) {
  static std::mutex mutex;
  static auto& caches = *new std::map<int, Cache>;
  const std::lock_guard lock(mutex);
  return caches.try_emplace(device.index, device).first->second;
}

}  // namespace

void* allocate(Cuda device, int64_t bytes) {
  stream_of(device);  // refuses a device that is not there
  if (bytes == 0) return nullptr;
  check(bytes <= INT64_MAX / 2, "memory: cannot allocate {} bytes; use smaller arrays", bytes);
  return cache_of(device).take(bytes);
}

void deallocate(Cuda device, void* data, int64_t bytes) {
  if (data != nullptr) cache_of(device).put(data, bytes);
}

MemoryFigures memory_figures(Cuda device) { return cache_of(device).figures(); }
void release_cached_memory(Cuda device) { cache_of(device).release(); }
void reset_peak_memory(Cuda device) { cache_of(device).reset_peak(); }

void copy_from_host(Cuda device, void* data, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  const cudaStream_t stream = stream_of(device);
  check_cuda(
      cudaMemcpyAsync(data, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream),
      "cudaMemcpy to the device");
  check_cuda(cudaStreamSynchronize(stream), "cudaMemcpy to the device");
}

void copy_to_host(Cuda device, void* host, const void* data, int64_t bytes) {
  if (bytes == 0) return;
  const cudaStream_t stream = stream_of(device);
  check_cuda(
      cudaMemcpyAsync(host, data, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream),
      "cudaMemcpy from the device");
  check_cuda(cudaStreamSynchronize(stream), "cudaMemcpy from the device");
}

}  // namespace gs::backend
