#include "framework/backend/gemm.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>

#include "framework/backend/cpu/gemm_library.h"
#include "framework/core/parallel.h"

// Bound by arithmetic at large sizes; below some 10^5 operations by the call itself. Each thread
// multiplies a slab of rows, or of columns where C is wide, with the library in one thread: the
// sums are the same for any number of threads that the library's blocking allows.
namespace gs::backend {
namespace {

std::atomic<const GemmLibrary*> chosen{nullptr};

const GemmLibrary& library_named(const std::string& name) {
  if (name == "openblas") return open_blas();
  check(name == "onednn", "GEMM library: unknown, got '{}'; use openblas or onednn", name);
  const GemmLibrary* library = one_dnn();
  check(library != nullptr, "GEMM library: oneDNN (libdnnl.so) is not installed; use openblas");
  check_products(*library);
  return *library;
}

const GemmLibrary& float_library() {
  const GemmLibrary* library = chosen.load(std::memory_order_acquire);
  if (library != nullptr) return *library;
  const char* wish = std::getenv("GRADSTONE_GEMM");
  library = &library_named(wish != nullptr ? wish : one_dnn() != nullptr ? "onednn" : "openblas");
  chosen.store(library, std::memory_order_release);
  return *library;
}

void multiply(const GemmSizes& sizes, const float* a, const float* b, float* c) {
  float_library().multiply_float(sizes, a, b, c);
}

void multiply(const GemmSizes& sizes, const double* a, const double* b, double* c) {
  open_blas().multiply_double(sizes, a, b, c);
}

// beta C alone, what is left where there is nothing to sum.
template <typename T>
void scale(const GemmSizes& sizes, T* c) {
  for (int64_t i = 0; i < sizes.m; ++i) {
    for (int64_t j = 0; j < sizes.n; ++j) {
      T& element = c[i * sizes.c_stride + j];
      element = sizes.beta == 0 ? T(0) : static_cast<T>(sizes.beta) * element;
    }
  }
}

void check_sizes(const GemmSizes& s) {
  const int64_t largest = std::max({s.m, s.n, s.k, s.a_stride, s.b_stride, s.c_stride});
  check(largest <= INT_MAX, "gemm: sizes beyond 2^31 - 1, got {} x {} x {}; split the product", s.m,
        s.n, s.k);
}

template <typename T>
void multiply_slab(GemmSizes sizes, bool rows, int64_t first, int64_t last, const T* a, const T* b,
                   T* c) {
  if (rows) {
    sizes.m = last - first;
    a += sizes.transpose_a ? first : first * sizes.a_stride;
    c += first * sizes.c_stride;
  } else {
    sizes.n = last - first;
    b += sizes.transpose_b ? first * sizes.b_stride : first;
    c += first;
  }
  multiply(sizes, a, b, c);
}

template <typename T>
void gemm_any(const GemmSizes& sizes, const T* a, const T* b, T* c) {
  check_sizes(sizes);
  if (sizes.m == 0 || sizes.n == 0) return;
  // Libraries differ in what alpha = 0 makes of NaN.
  if (sizes.k == 0 || sizes.alpha == 0) return scale(sizes, c);
  const bool rows = sizes.m >= sizes.n;
  const int64_t length = rows ? sizes.m : sizes.n;
  // A slab of less than this many multiplications costs more to hand over than to compute.
  constexpr double kSlab = 3e5;
  const double work =
      static_cast<double>(sizes.m) * static_cast<double>(sizes.n) * static_cast<double>(sizes.k);
  const int64_t grain =
      std::max<int64_t>(16, static_cast<int64_t>(kSlab / (work / static_cast<double>(length))));
  prepare_gemm(Cpu(), dtype_of<T>);
  parallel_for(0, length, grain, [&](int64_t first, int64_t last) {
    multiply_slab(sizes, rows, first, last, a, b, c);
  });
}

template <typename T>
void gemm_batch_any(const GemmSizes& sizes, const GemmBatch& batch, const T* a, const T* b, T* c) {
  if (batch.count == 0 || sizes.m == 0 || sizes.n == 0) return;
  const double work =
      static_cast<double>(sizes.m) * static_cast<double>(sizes.n) * static_cast<double>(sizes.k);
  const auto product = [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    gemm_any(sizes, a + batch.a[at], b + batch.b[at], c + batch.c[at]);
  };
  if (batch.count < threads() || work > 1e8) {
    for (int64_t i = 0; i < batch.count; ++i) product(i);
    return;
  }
  product(0);
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(3e5 / (work + 1e3)));
  parallel_for(1, batch.count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) product(i);
  });
}

}  // namespace

void prepare_gemm(Cpu, DType dtype) {
  // OpenBLAS takes milliseconds to open: not where oneDNN does all the work.
  dtype == kFloat32 ? float_library() : open_blas();
}

void gemm(Cpu, const GemmSizes& sizes, const float* a, const float* b, float* c) {
  gemm_any(sizes, a, b, c);
}
void gemm(Cpu, const GemmSizes& sizes, const double* a, const double* b, double* c) {
  gemm_any(sizes, a, b, c);
}

void gemm_batch(Cpu, const GemmSizes& sizes, const GemmBatch& batch, const float* a, const float* b,
                float* c) {
  gemm_batch_any(sizes, batch, a, b, c);
}
void gemm_batch(Cpu, const GemmSizes& sizes, const GemmBatch& batch, const double* a,
                const double* b, double* c) {
  gemm_batch_any(sizes, batch, a, b, c);
}

std::vector<std::string> gemm_libraries() {
  std::vector<std::string> titles{float_library().title};
  const GemmLibrary* others[] = {&open_blas(), one_dnn()};
  for (const GemmLibrary* library : others) {
    if (library != nullptr && library != &float_library()) titles.push_back(library->title);
  }
  return titles;
}

void use_gemm_library(const std::string& name) { chosen = &library_named(name); }

}  // namespace gs::backend
