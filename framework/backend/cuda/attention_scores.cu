// Bound by memory; run only where scores are given.
#include "framework/backend/attention.h"
#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/element.cuh"

namespace gs::backend {
namespace {

// Sizes along (B, H, T, S), and how far apart neighbours are in the scores: 0 where the scores were
// broadcast.
struct ScoresForm {
  int64_t sizes[4], strides[4];

  __device__ int64_t summed() const {
    int64_t count = 1;
    for (int d = 0; d < 4; ++d) count *= strides[d] == 0 ? sizes[d] : 1;
    return count;
  }
  // The place of term `term` of element `element`.
  __device__ void place(int64_t element, int64_t term, int64_t (&place)[4]) const {
    for (int d = 3; d >= 0; --d) {
      if (strides[d] != 0) {
        place[d] = element / strides[d] % sizes[d];
      } else {
        place[d] = term % sizes[d];
        term /= sizes[d];
      }
    }
  }
};

// A block sums up one element of y at a time.
template <typename T>
__global__ void sum_scores_kernel(T* y, const T* x, int64_t elements, ScoresForm form,
                                  const AttentionSequence* sequences) {
  __shared__ double scratch[kWarp];
  const int64_t terms = form.summed();
  for (int64_t element = blockIdx.x; element < elements; element += gridDim.x) {
    double sum = 0;
    for (int64_t term = threadIdx.x; term < terms; term += blockDim.x) {
      int64_t at[4];
      form.place(element, term, at);
      const AttentionSequence& sequence = sequences[at[0]];
      if (at[2] < sequence.queries && at[3] < sequence.weights_width)
        sum += static_cast<double>(
            load(x + sequence.weights_start +
                 (at[1] * sequence.queries + at[2]) * sequence.weights_width + at[3]));
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) store(y + element, static_cast<Compute<T>>(sum));
  }
}

// Counts the elements that are one, and those that are neither zero nor one.
template <typename T>
__global__ void zeros_and_ones_kernel(int32_t* counts, const T* x, int64_t elements) {
  int ones = 0, others = 0;
  for (int64_t i = first_element(); i < elements; i += element_step()) {
    const Compute<T> value = load(x + i);
    ones |= value == 1;
    others |= value != 0 && value != 1;
  }
  ones = __syncthreads_or(ones);
  others = __syncthreads_or(others);
  if (threadIdx.x != 0) return;
  if (ones != 0) atomicAdd(counts, 1);
  if (others != 0) atomicAdd(counts + 1, 1);
}

}  // namespace

void sum_scores(Cuda device, Array& y, const Array& x, const AttentionPlan& plan) {
  if (y.elements() == 0) return;
  ScoresForm form{{static_cast<int64_t>(plan.sequences.size()), plan.heads, 0, 0}, {}};
  for (const AttentionSequence& sequence : plan.sequences) {
    form.sizes[2] = std::max(form.sizes[2], sequence.queries);
    form.sizes[3] = std::max(form.sizes[3], sequence.weights_width);
  }
  std::copy(plan.scores_strides.begin(), plan.scores_strides.end(), form.strides);
  constexpr int64_t kMostBlocks = 1 << 16;
  // Elements of one term or of few dozens are left to a warp.
  const bool few = plan.weights / y.elements() < 4 * kWarp;
  const Grid grid{dim3(static_cast<unsigned>(std::min(y.elements(), kMostBlocks))),
                  dim3(few ? kWarp : kThreads)};
  dispatch_element("attention", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("attention", device, grid, sum_scores_kernel<T>, elements_of<T>(y), elements_of<T>(x),
           y.elements(), form, static_cast<const AttentionSequence*>(plan.table.raw()));
  });
}

bool zeros_and_ones(Cuda device, const Array& x) {
  if (x.elements() == 0) return false;
  int32_t counts[2] = {};
  Array counted = Array::empty({2}, kInt32, x.device());
  check_cuda(cudaMemsetAsync(counted.raw(), 0, sizeof(counts), stream_of(device)), "cudaMemset");
  dispatch_element("attention", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch("attention", device, grid_of(x.elements(), 8), zeros_and_ones_kernel<T>,
           counted.data<int32_t>(), elements_of<T>(x), x.elements());
  });
  copy_to_host(device, counts, counted.raw(), sizeof(counts));
  return counts[0] > 0 && counts[1] == 0;
}

}  // namespace gs::backend
