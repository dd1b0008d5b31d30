#pragma once

#include <string>

#include "framework/backend/backend.h"

namespace gs::backend {

// What computes there, for logs: "AVX-512 kernels, products by oneDNN (AVX-512)", or the product
// name of a CUDA device. On the CPU it opens the library of matrix products.
std::string device_title(Cpu);
std::string device_title(Cuda);

}  // namespace gs::backend
