// Device and pinned memory, copies and fills.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"
#include "tests/cuda_emulation/sanitizers.h"

namespace gs::cuda_emulation {
namespace {

constexpr size_t kDeviceBytes = size_t{8} << 30;

struct Piece {
  size_t bytes = 0;
  bool being_freed = false;
};
using Pieces = std::map<uintptr_t, Piece>;

struct Memory {
  Pieces device, pinned;
  size_t live = 0;
  int workers = 0;
};
// Never destroyed: other static objects may free memory at the end.
Memory& memory() {
  static auto& memory = *new Memory;
  return memory;
}

// The piece that the address lies in.
Pieces::iterator piece_of(Pieces& pieces, const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto piece = pieces.upper_bound(address);
  if (piece == pieces.begin()) return pieces.end();
  --piece;
  return address < piece->first + std::max<size_t>(piece->second.bytes, 1) ? piece : pieces.end();
}
bool on_device(const void* pointer, size_t bytes) {
  const auto piece = piece_of(memory().device, pointer);
  return piece != memory().device.end() &&
         reinterpret_cast<uintptr_t>(pointer) + bytes <= piece->first + piece->second.bytes;
}
bool pinned(const void* pointer) {
  return piece_of(memory().pinned, pointer) != memory().pinned.end();
}

// Exactly the bytes asked for, so that AddressSanitizer sees whatever lies beyond; all of them NaN.
void* new_piece(Pieces& pieces, size_t bytes, size_t alignment) {
  void* piece = nullptr;
  if (posix_memalign(&piece, alignment, bytes) != 0) return nullptr;
  std::memset(piece, 0xff, bytes);
  pieces[reinterpret_cast<uintptr_t>(piece)] = {bytes};
  return piece;
}

cudaError_t free_device(void* pointer) {
  const auto piece = memory().device.find(reinterpret_cast<uintptr_t>(pointer));
  if (piece == memory().device.end())
    return explain(cudaErrorInvalidValue, "free: %p was not allocated, or freed before", pointer);
  memory().live -= piece->second.bytes;
  open_memory(pointer, piece->second.bytes);
  memory().device.erase(piece);
  std::free(pointer);
  return cudaSuccess;
}

void set_open(bool open) {
  for (auto& [address, piece] : memory().device) {
    void* const pointer = reinterpret_cast<void*>(address);
    open ? open_memory(pointer, piece.bytes) : close_memory(pointer, piece.bytes);
  }
}

cudaError_t check_kind(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const bool to_device = on_device(to, bytes), from_device = on_device(from, bytes);
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (to_device == wants_to && from_device == wants_from) return cudaSuccess;
  return explain(cudaErrorInvalidValue,
                 "copy: kind %d, but its destination is%s and its source is%s device memory of "
                 "that size",
                 static_cast<int>(kind), to_device ? "" : " not", from_device ? "" : " not");
}

}  // namespace

DeviceWorks::DeviceWorks() {
  if (kAddressSanitizer && memory().workers++ == 0) set_open(true);
}
DeviceWorks::~DeviceWorks() {
  if (kAddressSanitizer && --memory().workers == 0) set_open(false);
}

void check_device_pointer(const void* pointer, const char* user, int argument) {
  const Lock lock;
  if (pointer == nullptr) return;
  const auto piece = piece_of(memory().device, pointer);
  if (piece == memory().device.end() || piece->second.being_freed)
    stop("pointer", "argument %d of %s is no device memory", argument, user);
}

void check_device_range(const void* pointer, size_t bytes, const char* user) {
  const Lock lock;
  if (bytes > 0 && !on_device(pointer, bytes))
    stop("pointer", "%s: %p is no device memory of %zu bytes", user, pointer, bytes);
}

size_t live_device_bytes() { return memory().live; }

}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const Lock lock;
  *pointer = nullptr;
  if (const cudaError_t status = refuse_in_capture()) return status;
  if (bytes == 0) return cudaSuccess;
  if (bytes > kDeviceBytes - memory().live) return error(cudaErrorMemoryAllocation);
  void* const piece = new_piece(memory().device, bytes, 256);
  if (piece == nullptr) return error(cudaErrorMemoryAllocation);
  memory().live += bytes;
  if (memory().workers == 0) close_memory(piece, bytes);
  *pointer = piece;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  const Lock lock;
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t status = refuse_in_capture()) return status;
  drain_all();
  return free_device(pointer);
}
// In a capture it would become a node of the graph, which nothing here needs.
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const Lock lock;
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t status = refuse_in_capture()) return status;
  const auto piece = memory().device.find(reinterpret_cast<uintptr_t>(pointer));
  if (piece == memory().device.end() || piece->second.being_freed)
    return explain(cudaErrorInvalidValue, "free: %p was not allocated, or freed before", pointer);
  piece->second.being_freed = true;
  return enqueue(stream, [pointer] { free_device(pointer); });
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  const Lock lock;
  *pointer = nullptr;
  if (const cudaError_t status = refuse_in_capture()) return status;
  if (bytes == 0) return cudaSuccess;
  *pointer = new_piece(memory().pinned, bytes, 64);
  return *pointer != nullptr ? cudaSuccess : error(cudaErrorMemoryAllocation);
}
// The runtime's header makes cudaMallocHost of typed pointers of it.
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
cudaError_t cudaFreeHost(void* pointer) {
  const Lock lock;
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t status = refuse_in_capture()) return status;
  if (memory().pinned.count(reinterpret_cast<uintptr_t>(pointer)) == 0)
    return explain(cudaErrorInvalidValue, "free: %p is no pinned memory", pointer);
  drain_all();
  memory().pinned.erase(reinterpret_cast<uintptr_t>(pointer));
  std::free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock;
  *total = kDeviceBytes;
  *free = kDeviceBytes - memory().live;
  return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const Lock lock;
  *attributes = {};
  if (on_device(pointer, 1)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
  } else if (pinned(pointer)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Lock lock;
  if (bytes == 0) return cudaSuccess;
  if (const cudaError_t status = check_kind(to, from, bytes, kind)) return status;
  // Nothing promises that pageable memory is staged, or reached, before the call returns.
  return enqueue(stream, [=] { std::memmove(to, from, bytes); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Lock lock;
  if (const cudaError_t status = refuse_in_capture()) return status;
  const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
  drain(*stream_or_default(nullptr));
  return status;
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  const Lock lock;
  if (bytes == 0) return cudaSuccess;
  if (!on_device(pointer, bytes))
    return explain(cudaErrorInvalidValue, "fill: %p is no device memory of %zu bytes", pointer,
                   bytes);
  return enqueue(stream, [=] { std::memset(pointer, value, bytes); });
}
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  const Lock lock;
  if (const cudaError_t status = refuse_in_capture()) return status;
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}
}
