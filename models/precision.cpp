#include "models/precision.h"

#include "framework/backend/gemm.h"

namespace gs {

void set_precision(Transformer& transformer, const std::string& precision) {
  check(precision == "float32" || transformer.device() != Device::cpu(),
        "--precision {}: needs a CUDA device, got --device {}; use --precision float32", precision,
        transformer.device());
  backend::use_tf32(precision == "tf32");
  transformer.use_bfloat16(precision == "bfloat16");
}

}  // namespace gs
