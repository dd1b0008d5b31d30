#include "framework/backend/gemm.h"

#include <climits>
#include <type_traits>

#include "framework/backend/cuda/element.cuh"
#include "framework/backend/cuda/launch.h"
#include "framework/backend/cuda/product.h"

// Bound by arithmetic, which cuBLASLt does.
namespace gs::backend {
namespace {

// beta C alone, what is left where there is nothing to sum.
template <typename T>
__global__ void scale_rows_kernel(T* c, int64_t rows, int64_t columns, int64_t stride,
                                  Compute<T> factor) {
  for (int64_t i = first_element(); i < rows * columns; i += element_step()) {
    T* const place = c + i / columns * stride + i % columns;
    store(place, factor == 0 ? Compute<T>(0) : factor * load(place));
  }
}

template <typename T>
void scale_rows(Cuda device, const GemmSizes& sizes, T* c) {
  using Kernel = std::conditional_t<std::is_same_v<T, BFloat16>, __nv_bfloat16, T>;
  launch("gemm", device, grid_of(sizes.m * sizes.n), scale_rows_kernel<Kernel>,
         reinterpret_cast<Kernel*>(c), sizes.m, sizes.n, sizes.c_stride,
         static_cast<Compute<Kernel>>(sizes.beta));
}

void check_sizes(const GemmSizes& s) {
  const int64_t largest = std::max({s.m, s.n, s.k, s.a_stride, s.b_stride, s.c_stride});
  check(largest <= INT_MAX, "gemm: sizes beyond 2^31 - 1, got {} x {} x {}; split the product", s.m,
        s.n, s.k);
}

// The products first to first + count - 1 of a batch have steps of one length in each operand.
struct Run {
  size_t first = 0;
  int64_t count = 1, a_step = 0, b_step = 0, c_step = 0;
};

// The longest run from `first` on. The library takes no steps backwards.
Run run_from(const GemmBatch& batch, size_t first) {
  constexpr int64_t kMost = 65'535;  // more do not fit into one dimension of a grid
  const auto step = [&](const std::vector<int64_t>& offsets, size_t i) {
    return offsets[i + 1] - offsets[i];
  };
  Run run{.first = first};
  const auto end = static_cast<size_t>(batch.count);
  if (first + 1 == end) return run;
  const int64_t a = step(batch.a, first), b = step(batch.b, first), c = step(batch.c, first);
  if (a < 0 || b < 0 || c <= 0) return run;
  size_t last = first + 1;
  while (last + 1 < end && run.count + 1 < kMost && step(batch.a, last) == a &&
         step(batch.b, last) == b && step(batch.c, last) == c) {
    ++last;
    ++run.count;
  }
  return {first, run.count + 1, a, b, c};
}

template <typename In, typename Out>
void multiply_run(Cuda device, const GemmSizes& sizes, const Run& run, const In* a, const In* b,
                  Out* c) {
  const Product product{.sizes = sizes,
                        .in = dtype_of<In>,
                        .out = dtype_of<Out>,
                        .count = run.count,
                        .a_step = run.a_step,
                        .b_step = run.b_step,
                        .c_step = run.c_step};
  check(multiply(device, "gemm", product, a, b, c),
        "gemm: cuBLASLt has no algorithm for {} products of {} x {} x {}, {} to {}; pad them to "
        "multiples of 8",
        run.count, sizes.m, sizes.n, sizes.k, product.in, product.out);
}

template <typename In, typename Out>
void gemm_any(Cuda device, const GemmSizes& sizes, const In* a, const In* b, Out* c) {
  check_sizes(sizes);
  if (sizes.m == 0 || sizes.n == 0) return;
  if (sizes.k == 0 || sizes.alpha == 0) return scale_rows(device, sizes, c);
  multiply_run(device, sizes, Run{}, a, b, c);
}

template <typename In, typename Out>
void gemm_batch_any(Cuda device, const GemmSizes& sizes, const GemmBatch& batch, const In* a,
                    const In* b, Out* c) {
  check_sizes(sizes);
  if (sizes.m == 0 || sizes.n == 0) return;
  if (sizes.k == 0 || sizes.alpha == 0) {
    for (int64_t i = 0; i < batch.count; ++i)
      scale_rows(device, sizes, c + batch.c[static_cast<size_t>(i)]);
    return;
  }
  for (size_t i = 0; i < static_cast<size_t>(batch.count);) {
    const Run run = run_from(batch, i);
    multiply_run(device, sizes, run, a + batch.a[i], b + batch.b[i], c + batch.c[i]);
    i += static_cast<size_t>(run.count);
  }
}

}  // namespace

void gemm(Cuda device, const GemmSizes& sizes, const float* a, const float* b, float* c) {
  gemm_any(device, sizes, a, b, c);
}
void gemm(Cuda device, const GemmSizes& sizes, const double* a, const double* b, double* c) {
  gemm_any(device, sizes, a, b, c);
}
void gemm(Cuda device, const GemmSizes& sizes, const BFloat16* a, const BFloat16* b, BFloat16* c) {
  gemm_any(device, sizes, a, b, c);
}
void gemm(Cuda device, const GemmSizes& sizes, const BFloat16* a, const BFloat16* b, float* c) {
  gemm_any(device, sizes, a, b, c);
}

void gemm_batch(Cuda device, const GemmSizes& sizes, const GemmBatch& batch, const float* a,
                const float* b, float* c) {
  gemm_batch_any(device, sizes, batch, a, b, c);
}
void gemm_batch(Cuda device, const GemmSizes& sizes, const GemmBatch& batch, const double* a,
                const double* b, double* c) {
  gemm_batch_any(device, sizes, batch, a, b, c);
}
void gemm_batch(Cuda device, const GemmSizes& sizes, const GemmBatch& batch, const BFloat16* a,
                const BFloat16* b, BFloat16* c) {
  gemm_batch_any(device, sizes, batch, a, b, c);
}
void gemm_batch(Cuda device, const GemmSizes& sizes, const GemmBatch& batch, const BFloat16* a,
                const BFloat16* b, float* c) {
  gemm_batch_any(device, sizes, batch, a, b, c);
}

}  // namespace gs::backend
