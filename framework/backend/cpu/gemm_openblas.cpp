#include <dlfcn.h>

#include <cstdlib>

#include "framework/backend/cpu/gemm_library.h"

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
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (avx512) return "SkylakeX";
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? "Haswell" : nullptr;
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

// Old kernels are known to compute wrongly on some processors: a few products with known results
// cost microseconds.
template <typename T>
bool multiplies_rightly(void (*multiply)(const GemmSizes&, const T*, const T*, T*)) {
  constexpr int64_t m = 19, n = 21, k = 35;
  std::vector<T> a(m * k), b(k * n), c(m * n, T(-1));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<T>(static_cast<int>(i * 7 % 11) - 5);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<T>(static_cast<int>(i * 5 % 13) - 6);
  multiply({.m = m, .n = n, .k = k, .a_stride = k, .b_stride = n, .c_stride = n}, a.data(),
           b.data(), c.data());
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      T sum = 0;
      for (size_t l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      if (c[i * n + j] != sum) return false;
    }
  }
  return true;
}

}  // namespace

void* find_symbol(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  check(symbol != nullptr, "{}: the library lacks this function; run tools/setup.sh", name);
  return symbol;
}

const GemmLibrary& open_blas() {
  static const GemmLibrary library = [] {
    void* handle = open_with_right_kernels();
    sgemm = symbol_of<Sgemm>(handle, "cblas_sgemm");
    dgemm = symbol_of<Dgemm>(handle, "cblas_dgemm");
    // The threads are ours: its own would fight with them for the cores.
    symbol_of<SetThreads>(handle, "openblas_set_num_threads")(1);
    const std::string core = symbol_of<CoreName>(handle, "openblas_get_corename")();
    check(multiplies_rightly(multiply_float) && multiplies_rightly(multiply_double),
          "OpenBLAS: its {} kernels multiply wrongly on this processor; set "
          "OPENBLAS_CORETYPE=Haswell",
          core);
    return GemmLibrary{"openblas", "OpenBLAS (" + core + ")", multiply_float, multiply_double};
  }();
  return library;
}

}  // namespace gs::backend
