#include "framework/backend/cuda/upload.h"

#include <algorithm>
#include <cstddef>

#include "framework/backend/cuda/runtime.h"
#include "framework/backend/store.h"

namespace gs::backend {

Array upload(Cuda device, const void* host, int64_t bytes) {
  check(!capturing(),
        "upload: a step that is recorded brings a table to the device; keep it there");
  const int64_t word = size_of(kInt32);
  check(bytes % word == 0, "upload: takes whole words of {} bytes, got {} bytes", word, bytes);
  Array copy = Array::empty({bytes / word}, kInt32, Device::cuda(device.index));
  if (bytes > 4 * kMostStoredBytes) {
    // The runtime stages memory that is not pinned before the call returns.
    check_cuda(cudaMemcpyAsync(copy.raw(), host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice,
                               stream_of(device)),
               "cudaMemcpy to the device");
    return copy;
  }
  for (int64_t start = 0; start < bytes; start += kMostStoredBytes)
    store(device, static_cast<std::byte*>(copy.raw()) + start,
          static_cast<const std::byte*>(host) + start, std::min(kMostStoredBytes, bytes - start));
  return copy;
}

}  // namespace gs::backend
