#include <dlfcn.h>
#include <omp.h>

#include <utility>

#include "framework/backend/cpu/gemm_library.h"
#include "framework/backend/instruction_set.h"

namespace gs::backend {
namespace {

// Its kernels (2.6) use the stack pointer as a register for data: a signal handler that may run in
// a thread that multiplies needs an alternate stack (see framework/train/interrupt.cpp).
//
// From dnnl.h: row-major, and it chooses its kernels by itself on any processor.
using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                  int64_t, float, float*, int64_t);

using SetIsa = int(int);
using EffectiveIsa = int();

// From dnnl_types.h: each set of instructions holds the bits of those before it.
enum : int { kIsaSse41 = 0x1, kIsaAvx = 0x3, kIsaAvx2 = 0x7, kIsaAvx512Core = 0x27 };

Sgemm* sgemm = nullptr;

// oneDNN would start OpenMP threads of its own wherever it is not called from one of ours.
struct OneThread {
  OneThread() : before(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before); }
  const int before;
};

void multiply(const GemmSizes& s, const float* a, const float* b, float* c) {
  const OneThread one_thread;
  const int status = sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k,
                           static_cast<float>(s.alpha), a, s.a_stride, b, s.b_stride,
                           static_cast<float>(s.beta), c, s.c_stride);
  // Fails only on sizes that gemm has refused before, or out of memory.
  if (status != 0) open_blas().multiply_float(s, a, b, c);
}

// Before its first product: afterwards its choice stands.
void limit_instructions(void* library) {
  const InstructionSet set = instruction_set(Cpu{});
  if (!instruction_set_is_named(Cpu{}) || set == InstructionSet::kAvx512) return;
  symbol_of<SetIsa>(library,
                    "dnnl_set_max_cpu_isa")(set == InstructionSet::kAvx2 ? kIsaAvx2 : kIsaSse41);
}

const char* instructions_of(void* library) {
  const int isa = symbol_of<EffectiveIsa>(library, "dnnl_get_effective_cpu_isa")();
  for (const auto& [bits, title] : {std::pair{kIsaAvx512Core, "AVX-512"},
                                    {kIsaAvx2, "AVX2"},
                                    {kIsaAvx, "AVX"},
                                    {kIsaSse41, "SSE4"}}) {
    if ((isa & bits) == bits) return title;
  }
  return "baseline";
}

}  // namespace

const GemmLibrary* one_dnn() {
  static const GemmLibrary library = [] {
    GemmLibrary result{"onednn", "oneDNN", "set GRADSTONE_GEMM=openblas", nullptr, nullptr};
    for (const char* file : {"libdnnl.so.3", "libdnnl.so.2"}) {
      void* handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (handle == nullptr) continue;
      sgemm = symbol_of<Sgemm>(handle, "dnnl_sgemm");
      limit_instructions(handle);
      result.title += fmt::format(" ({})", instructions_of(handle));
      result.multiply_float = multiply;
      break;
    }
    return result;
  }();
  return library.multiply_float == nullptr ? nullptr : &library;
}

}  // namespace gs::backend
