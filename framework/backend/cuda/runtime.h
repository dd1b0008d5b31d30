#pragma once

#include <cuda_runtime.h>

#include "framework/backend/backend.h"

namespace gs::backend {

// Throws Error that names the call, what the runtime says, file and line, unless all went well.
// (clang 14 has no std::source_location.)
void check_cuda(cudaError_t status, const char* call, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

// Makes the device current in this thread and gives the stream on which all its work runs, in
// order. A device that is not there is refused.
cudaStream_t stream_of(Cuda device);

// Whether what this thread asks of its device is recorded instead of done, so that nothing can be
// waited for and no memory that the recording knows may go to others.
bool capturing();
void set_capturing(bool capturing);

}  // namespace gs::backend
