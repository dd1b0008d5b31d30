#include "framework/backend/gemm.h"

#include <atomic>

namespace gs::backend {
namespace {

std::atomic<bool> tf32{false}, timing{false};

}  // namespace

void use_tf32(bool use) { tf32 = use; }
bool uses_tf32() { return tf32; }

void time_gemm_algorithms(bool time) { timing = time; }
bool times_gemm_algorithms() { return timing; }

}  // namespace gs::backend
