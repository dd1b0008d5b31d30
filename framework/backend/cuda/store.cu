#include "framework/backend/store.h"

#include <cstring>

#include "framework/backend/cuda/launch.h"
#include "framework/backend/cuda/recording.h"

namespace gs::backend {
namespace {

constexpr int64_t kWordBytes = sizeof(uint32_t);

// Travels with the launch, so that no memory of the host has to wait for a copy.
struct Words {
  uint32_t values[kMostStoredBytes / kWordBytes];
};

__global__ void store_kernel(uint32_t* data, Words words, int64_t count) {
  for (int64_t i = first_element(); i < count; i += element_step()) data[i] = words.values[i];
}

}  // namespace

void store(Cuda device, void* data, const void* host, int64_t bytes) {
  check(bytes <= kMostStoredBytes && bytes % kWordBytes == 0,
        "store: takes whole words of {} bytes up to {} bytes, got {}", kWordBytes, kMostStoredBytes,
        bytes);
  refuse_in_recording("store: a step that is recorded would write the same numbers in each replay");
  if (bytes == 0) return;
  Words words;
  std::memcpy(words.values, host, static_cast<size_t>(bytes));
  launch("store", device, grid_of(bytes / kWordBytes), store_kernel, static_cast<uint32_t*>(data),
         words, bytes / kWordBytes);
}

}  // namespace gs::backend
