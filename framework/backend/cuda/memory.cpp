#include "framework/backend/memory.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/backend/cuda/recording.h"
#include "framework/backend/cuda/runtime.h"
#include "framework/backend/memory_pool.h"

namespace gs::backend {

// Its free blocks, by size.
struct MemoryPool {
  Cuda device;
  std::map<int64_t, std::vector<void*>> free = {};
};

namespace {

thread_local MemoryPool* pool_in_use = nullptr;

constexpr int64_t kGranule = 512;
constexpr int64_t kLarge = int64_t{1} << 20;
constexpr int64_t kLargeGranule = int64_t{1} << 21;

// Blocks are handed out and taken back in the order of the one stream that uses them, so that a
// freed one may serve again at once: whatever still runs on it comes before its next use.
class Cache {
 public:
  explicit Cache(Cuda device) : device_(device) {}

  void* take(int64_t bytes) {
    int64_t size = block_bytes(bytes);
    MemoryPool* const pool = own_pool_in_use();
    const std::lock_guard lock(mutex_);
    // Steps of different sizes share the blocks of a pool, which never go back: larger ones do,
    // too, and new ones are made for somewhat more.
    const bool shares = pool != nullptr && keeps_;
    void* data =
        take_free(pool != nullptr ? pool->free : free_, size, shares ? size + size / 2 : size);
    if (data == nullptr) {
      if (shares && size >= kLarge) size = block_bytes(size + size / 4);
      data = take_new(size);
    }
    check(
        data != nullptr,
        "memory: cannot allocate {} bytes on cuda:{}, {} are in use; use a smaller batch or model",
        bytes, device_.index, figures_.live);
    if (pool != nullptr) owned_[data] = {pool, size};
    figures_.live += size;
    figures_.peak = std::max(figures_.peak, figures_.live);
    return data;
  }

  void put(void* data, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = owned_.find(data);
    const auto [owner, size] =
        found == owned_.end() ? Owned{nullptr, block_bytes(bytes)} : found->second;
    MemoryPool* pool = owner;
    // A recording that knows the block may write to it again.
    if (pool == nullptr && capturing()) pool = own_pool_in_use();
    if (pool == nullptr) {
      owned_.erase(data);
    } else {
      owned_[data] = {pool, size};
    }
    figures_.live -= size;
    if (pool == nullptr && !keeps_) {
      // Destructors call it: what is wrong with the device will be told by the next call.
      if (cudaFreeAsync(data, stream_of(device_)) != cudaSuccess) cudaGetLastError();
      return;
    }
    figures_.cached += size;
    (pool != nullptr ? pool->free : free_)[size].push_back(data);
  }

  // What the pool has free becomes common memory, and what is still in use will.
  void dissolve(const MemoryPool& pool) {
    const std::lock_guard lock(mutex_);
    for (const auto& [size, blocks] : pool.free) {
      free_[size].insert(free_[size].end(), blocks.begin(), blocks.end());
      for (void* data : blocks) owned_.erase(data);
    }
    for (auto& [data, owned] : owned_) {
      if (owned.pool == &pool) owned.pool = nullptr;
    }
    if (!keeps_) release_free();
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
  // Who gets a block back, or null for the common memory, and how large it is.
  struct Owned {
    MemoryPool* pool;
    int64_t size;
  };

  // Large blocks come in few sizes, eight for each power of two, so that batches of different
  // lengths share them; at most an eighth of such a block is lost.
  int64_t block_bytes(int64_t bytes) const {
    if (!keeps_) return bytes;
    const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
    const int64_t granule = bytes < kLarge ? kGranule : std::max(kLargeGranule, power / 8);
    return (bytes + granule - 1) / granule * granule;
  }

  MemoryPool* own_pool_in_use() const {
    const bool own = pool_in_use != nullptr && pool_in_use->device.index == device_.index;
    return own ? pool_in_use : nullptr;
  }

  // The smallest block of `size` to `most` bytes; `size` becomes its own.
  void* take_free(std::map<int64_t, std::vector<void*>>& free, int64_t& size, int64_t most) {
    for (auto i = free.lower_bound(size); i != free.end() && i->first <= most; ++i) {
      if (i->second.empty()) continue;
      void* const data = i->second.back();
      i->second.pop_back();
      size = i->first;
      figures_.cached -= size;
      return data;
    }
    return nullptr;
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

  // cudaFree need not wait for what still runs; while work is recorded, nothing does.
  void release_free() {
    const cudaStream_t stream = stream_of(device_);
    if (!capturing()) check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    for (auto& [size, blocks] : free_) {
      for (void* data : blocks) check_cuda(cudaFree(data), "cudaFree");
      figures_.cached -= size * static_cast<int64_t>(blocks.size());
    }
    free_.clear();
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
  std::unordered_map<void*, Owned> owned_;      // the blocks of pools
  MemoryFigures figures_;
};

// Never destroyed: arrays with static lifetime may outlive any other static object.
Cache& cache_of(Cuda device) {
  static std::mutex mutex;
  static auto& caches = *new std::map<int, Cache>;
  const std::lock_guard lock(mutex);
  return caches.try_emplace(device.index, device).first->second;
}

// Whether the host's memory has been read or written when the call returns depends on the system
// (CUDA Runtime API, "API synchronization behavior"): the stream is waited for.
void copy_and_wait(Cuda device, void* to, const void* from, int64_t bytes, cudaMemcpyKind kind,
                   const char* what) {
  if (bytes == 0) return;
  refuse_in_recording(
      "memory: a step that is recorded copies between host and device; keep what it needs on the "
      "device");
  const cudaStream_t stream = stream_of(device);
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream), what);
  check_cuda(cudaStreamSynchronize(stream), what);
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

std::shared_ptr<MemoryPool> new_memory_pool(Cuda device) {
  return {new MemoryPool{device}, [](MemoryPool* pool) {
            cache_of(pool->device).dissolve(*pool);
            delete pool;
          }};
}

MemoryPool* use_memory_pool(Cuda, MemoryPool* pool) { return std::exchange(pool_in_use, pool); }

void copy_from_host(Cuda device, void* data, const void* host, int64_t bytes) {
  copy_and_wait(device, data, host, bytes, cudaMemcpyHostToDevice, "cudaMemcpy to the device");
}

void copy_to_host(Cuda device, void* host, const void* data, int64_t bytes) {
  copy_and_wait(device, host, data, bytes, cudaMemcpyDeviceToHost, "cudaMemcpy from the device");
}

}  // namespace gs::backend
