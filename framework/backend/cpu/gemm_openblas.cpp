#include <dlfcn.h>

#include <cstdlib>

#include "framework/backend/cpu/gemm_library.h"
#include "framework/backend/instruction_set.h"

namespace gs::backend {
namespace {

// From cblas.h; the library is opened at run time, so its header is not needed to build.
enum : int { kRowMajor = 101, kNoTranspose = 111, kTranspose = 112 };
using Sgemm = void(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                   float*, int);
using Dgemm = void(int, int, int, int, int, int, double, const double*, int, const double*, int,
                   double, double*, int);
using SetThreads = void(int);
using CoreName = char*();

Sgemm* sgemm = nullptr;
Dgemm* dgemm = nullptr;

// OpenBLAS chooses its kernels while it is loaded and falls back to SSE3 on processors younger than
// itself. The instructions that are really there decide better, unless the user has chosen.
const char* core_type() {
  const InstructionSet set = instruction_set(Cpu{});
  if (set == InstructionSet::kAvx512) return "SkylakeX";
  if (set == InstructionSet::kAvx2) return "Haswell";
  if (!instruction_set_is_named(Cpu{})) return nullptr;  // it knows processors of that age
  return set == InstructionSet::kSse4 ? "Nehalem" : "Prescott";
}

void* open_with_right_kernels() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  const char* core = std::getenv(kVariable) == nullptr ? core_type() : nullptr;
  if (core != nullptr) setenv(kVariable, core, 1);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (core != nullptr) unsetenv(kVariable);
  check(library != nullptr, "OpenBLAS: {}; run tools/setup.sh", dlerror());
  return library;
}

void multiply_float(const GemmSizes& s, const float* a, const float* b, float* c) {
  sgemm(kRowMajor, s.transpose_a ? kTranspose : kNoTranspose,
        s.transpose_b ? kTranspose : kNoTranspose, static_cast<int>(s.m), static_cast<int>(s.n),
        static_cast<int>(s.k), static_cast<float>(s.alpha), a, static_cast<int>(s.a_stride), b,
        static_cast<int>(s.b_stride), static_cast<float>(s.beta), c, static_cast<int>(s.c_stride));
}

void multiply_double(const GemmSizes& s, const double* a, const double* b, double* c) {
  dgemm(kRowMajor, s.transpose_a ? kTranspose : kNoTranspose,
        s.transpose_b ? kTranspose : kNoTranspose, static_cast<int>(s.m), static_cast<int>(s.n),
        static_cast<int>(s.k), s.alpha, a, static_cast<int>(s.a_stride), b,
        static_cast<int>(s.b_stride), s.beta, c, static_cast<int>(s.c_stride));
}

}  // namespace

const GemmLibrary& open_blas() {
  static const GemmLibrary library = [] {
    void* handle = open_with_right_kernels();
    sgemm = symbol_of<Sgemm>(handle, "cblas_sgemm");
    dgemm = symbol_of<Dgemm>(handle, "cblas_dgemm");
    // The threads are ours: its own would fight with them for the cores.
    symbol_of<SetThreads>(handle, "openblas_set_num_threads")(1);
    const std::string core = symbol_of<CoreName>(handle, "openblas_get_corename")();
    GemmLibrary result{"openblas", "OpenBLAS (" + core + ")",
                       "set GRADSTONE_SIMD=avx2, or OPENBLAS_CORETYPE to plainer kernels",
                       multiply_float, multiply_double};
    check_products(result);
    return result;
  }();
  return library;
}

}  // namespace gs::backend
