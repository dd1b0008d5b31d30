#include "framework/backend/top_log_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/backend/cuda/rows.cuh"
#include "framework/backend/gemm.h"

// A row is read once from memory and, for each element that is wanted, once more from the caches:
// of few elements that costs less than to sort.
namespace gs::backend {
namespace {

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

// Elements of type X to values of type Y.
template <typename Y, typename X>
struct TopLogSoftmax {
  using C = Compute<X>;
  static constexpr C kLowest = -std::numeric_limits<C>::infinity();
  Y* values;
  int32_t* indices;
  const X* x;
  int64_t count;

  // What comes next in the order: the largest element after (value, place), and where it is first;
  // NaN is passed over.
  struct Entry {
    C value;
    int64_t place;
  };
  template <int kSize>
  __device__ Entry next(const Line<kSize>& line, Entry after) const {
    Entry best{kLowest, kNowhere};
    line.for_each([&](int64_t at, int64_t place) {
      const auto pack = load_pack<X, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        const C value = load(pack.values + j);
        const bool follows =
            value < after.value || (value == after.value && place + j > after.place);
        if (!follows || !(value > best.value || best.place == kNowhere)) continue;
        best = {value, place + j};
      }
    });
    const C largest = line.reduce(best.value, Larger{}, kLowest);
    const bool largest_here = best.place != kNowhere && best.value == largest;
    return {largest, line.reduce(largest_here ? best.place : kNowhere, Smaller{}, kNowhere)};
  }

  template <int kSize>
  __device__ void operator()(const Line<kSize>& line) const {
    Entry entry = next(line, {std::numeric_limits<C>::infinity(), -1});
    const C shift = entry.value == kLowest ? C{0} : entry.value;
    C sum = 0;
    line.for_each([&](int64_t at, int64_t) {
      const auto pack = load_pack<X, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) sum += std::exp(load(pack.values + j) - shift);
    });
    sum = line.reduce(sum, Add{}, C{0});
    const C log_sum = sum == 0 ? C{0} : std::log(sum);
    const bool undefined = log_sum != log_sum;
    for (int64_t k = 0; k < count; ++k) {
      if (k > 0) entry = next(line, entry);
      if (!line.leads) continue;
      const int64_t at = line.row * count + k;
      store(values + at, undefined ? log_sum : entry.value - shift - log_sum);
      indices[at] = static_cast<int32_t>(undefined ? k : entry.place);
    }
  }
};

// Rows of x (rows, length) into the rows of the results from `first` on.
template <typename Y, typename X>
void take_top(Cuda device, Array& values, Array& indices, const X* x, int64_t first, int64_t rows,
              int64_t length) {
  const int64_t count = values.shape()[1];
  run_rows<kPackSize<X>>("top_log_softmax", device, Pieces::whole(Rows{rows, length, 1}),
                         TopLogSoftmax<Y, X>{elements_of<Y>(values) + first * count,
                                             indices.data<int32_t>() + first * count, x, count});
}

template <typename T>
__global__ void repeat_row_kernel(Compute<T>* y, const T* x, int64_t rows, int64_t width) {
  for (int64_t i = first_element(); i < rows * width; i += element_step())
    y[i] = load(x + i % width);
}

}  // namespace

void top_log_softmax(Cuda device, Array& values, Array& indices, const Array& x) {
  if (values.elements() == 0) return;
  dispatch_element("top_log_softmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    take_top<T>(device, values, indices, elements_of<T>(x), 0, x.shape()[0], x.shape()[1]);
  });
}

void linear_top_log_softmax(Cuda device, Array& values, Array& indices, const Array& x,
                            const Array& weight, const Array& bias) {
  if (values.elements() == 0) return;
  // So many rows that their logits stay in the second-level cache.
  constexpr int64_t kElements = int64_t{1} << 23, kFewest = 64;
  const int64_t rows = x.shape()[0], width = x.shape()[1], classes = weight.shape()[1];
  const int64_t block = std::min(rows, std::max(kFewest, kElements / classes));
  dispatch_element("top_log_softmax", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using C = Compute<T>;
    using Stored = std::conditional_t<std::is_same_v<T, __nv_bfloat16>, BFloat16, T>;
    Array logits = Array::empty(Shape{block, classes}, dtype_of<C>, x.device());
    for (int64_t first = 0; first < rows; first += block) {
      const int64_t taken = std::min(block, rows - first);
      if (bias.defined()) {
        launch("top_log_softmax", device, grid_of(taken * classes), repeat_row_kernel<T>,
               logits.data<C>(), elements_of<T>(bias), taken, classes);
      }
      gemm(device,
           GemmSizes{.m = taken,
                     .n = classes,
                     .k = width,
                     .a_stride = std::max<int64_t>(1, width),
                     .b_stride = classes,
                     .c_stride = classes,
                     .beta = bias.defined() ? 1.0 : 0.0},
           x.data<Stored>() + first * width, weight.data<Stored>(), logits.data<C>());
      take_top<T>(device, values, indices, logits.data<C>(), first, taken, classes);
    }
  });
}

}  // namespace gs::backend
