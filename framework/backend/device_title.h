#pragma once

#include <string>

#include "framework/backend/backend.h"

namespace gs::backend {

// What computes there, for logs: "AVX-512 kernels, products by oneDNN (AVX-512)", or the product
// name of a CUDA device. On the CPU it opens the library of matrix products.
std::string device_title(Cpu);
std::string device_title(Cuda);

// Why no CUDA device can be used, and what to do.
std::string no_device_reason(Cuda);
// The same of what the runtime tells: its error, and what versions the driver, 0 where there is
// none, and the runtime have (13000: CUDA 13.0).
std::string no_device_reason(Cuda, int error, int driver, int runtime);

}  // namespace gs::backend
