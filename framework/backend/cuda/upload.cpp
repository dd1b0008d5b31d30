#include "framework/backend/cuda/upload.h"

#include <algorithm>
#include <cstddef>

#include "framework/backend/cuda/recording.h"
#include "framework/backend/store.h"

namespace gs::backend {

Array upload(Cuda device, const void* host, int64_t bytes) {
  refuse_in_recording(
      "upload: a step that is recorded brings a table to the device; keep it there");
  const int64_t word = size_of(kInt32);
  check(bytes % word == 0, "upload: takes whole words of {} bytes, got {} bytes", word, bytes);
  Array copy = Array::empty({bytes / word}, kInt32, Device::cuda(device.index));
  if (bytes > 4 * kMostStoredBytes) {
    copy_from_host(device, copy.raw(), host, bytes);
    return copy;
  }
  for (int64_t start = 0; start < bytes; start += kMostStoredBytes)
    store(device, static_cast<std::byte*>(copy.raw()) + start,
          static_cast<const std::byte*>(host) + start, std::min(kMostStoredBytes, bytes - start));
  return copy;
}

}  // namespace gs::backend
