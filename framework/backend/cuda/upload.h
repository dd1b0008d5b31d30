#pragma once

#include "framework/backend/array.h"

namespace gs::backend {

// A copy in the device's memory of `bytes` bytes of the host's, whole words of 4 bytes. The host's
// may change as soon as the call returns; up to a few kilobytes the device is not waited for. For
// small tables: lengths, rows, addresses. A step that is recorded may not upload.
Array upload(Cuda device, const void* host, int64_t bytes);

}  // namespace gs::backend
