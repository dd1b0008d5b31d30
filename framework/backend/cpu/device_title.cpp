#include "framework/backend/device_title.h"

#include "framework/backend/gemm.h"
#include "framework/backend/instruction_set.h"

namespace gs::backend {

std::string device_title(Cpu) {
  return fmt::format("{} kernels, products by {}", title(instruction_set(Cpu{})),
                     gemm_libraries().front());
}

}  // namespace gs::backend
