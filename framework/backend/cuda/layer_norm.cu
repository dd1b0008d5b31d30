#include "framework/backend/layer_norm.h"

#include <cmath>

#include "framework/backend/cuda/rows.cuh"

// Bound by memory: each row is read and written once, what is read again comes from the caches. The
// sums over rows gather in shared memory, a few thousand rows' shares are left for a second step.
namespace gs::backend {
namespace {

// A parameter in the type that is computed with, C; undefined stays undefined.
template <typename C>
Array parameter_as(const Array& array) {
  return !array.defined() || array.dtype() == dtype_of<C> ? array : array.to(dtype_of<C>);
}
template <typename C>
const C* data_or_null(const Array& array) {
  return array.defined() ? array.data<C>() : nullptr;
}
template <typename T>
T* elements_or_null(Array& array) {
  return array.defined() ? elements_of<T>(array) : nullptr;
}

// values[j] becomes dropout of it, as element first + j.
template <typename C, int kSize>
__device__ void drop(Pack<C, kSize>& pack, const DropoutMask& mask, int64_t first) {
  if (mask.threshold == 0) return;
  const C scale = static_cast<C>(mask.scale);
  const auto element = static_cast<uint64_t>(first);
  std::array<uint32_t, 4> words{};
#pragma unroll
  for (int j = 0; j < kSize; ++j) {
    if (j % 4 == 0) words = mask.stream.words(element / 4 + j / 4);
    // Packs of 4 and more begin at a block of words.
    const unsigned at = kSize < 4 ? element % 4 + j : j % 4;
    const uint32_t word = at < 2 ? (at == 0 ? words[0] : words[1]) : at == 2 ? words[2] : words[3];
    pack.values[j] = mask.keeps_word(word) ? pack.values[j] * scale : C{0};
  }
}

template <typename T, int kSize>
__device__ Pack<Compute<T>, kSize> load_numbers(const T* place) {
  const auto stored = load_pack<T, kSize>(place);
  Pack<Compute<T>, kSize> pack;
#pragma unroll
  for (int j = 0; j < kSize; ++j) pack.values[j] = load(stored.values + j);
  return pack;
}
template <typename T, int kSize>
__device__ void store_numbers(T* place, const Pack<Compute<T>, kSize>& pack) {
  Pack<T, kSize> stored;
#pragma unroll
  for (int j = 0; j < kSize; ++j) store(stored.values + j, pack.values[j]);
  store_pack(place, stored);
}

template <typename T>
struct Norm {
  using C = Compute<T>;
  T* y;
  C* statistics;
  const T* x;
  const C* weight;
  const C* bias;
  int64_t width;
  NormOptions options;

  template <int kSize>
  __device__ void operator()(const Line<kSize>& line) const {
    const C origin = options.centered && line.last > 0 ? load(x + line.start) : C{0};
    C mean = 0;
    if (options.centered) {
      line.for_each([&](int64_t at, int64_t) {
        const auto pack = load_numbers<T, kSize>(x + at);
#pragma unroll
        for (int j = 0; j < kSize; ++j) mean += pack.values[j] - origin;
      });
      mean = line.reduce(mean, Add{}, C{0}) / static_cast<C>(width);
    }
    C squares = 0;
    line.for_each([&](int64_t at, int64_t) {
      const auto pack = load_numbers<T, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        const C offset = pack.values[j] - origin - mean;
        squares += offset * offset;
      }
    });
    const C variance = line.reduce(squares, Add{}, C{0}) / static_cast<C>(width);
    const C scale = static_cast<C>(1 / std::sqrt(static_cast<double>(variance) + options.epsilon));
    if (line.leads) {
      statistics[2 * line.row] = mean;
      statistics[2 * line.row + 1] = scale;
    }
    line.for_each([&](int64_t at, int64_t column) {
      auto pack = load_numbers<T, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) pack.values[j] = (pack.values[j] - origin - mean) * scale;
      if (weight != nullptr) {
        const auto factor = load_pack<C, kSize>(weight + column);
#pragma unroll
        for (int j = 0; j < kSize; ++j) pack.values[j] *= factor.values[j];
      }
      if (bias != nullptr) {
        const auto shift = load_pack<C, kSize>(bias + column);
#pragma unroll
        for (int j = 0; j < kSize; ++j) pack.values[j] += shift.values[j];
      }
      store_numbers<T, kSize>(y + at, pack);
    });
  }
};

// The same for sum = x + dropout(branch), which is norm.x.
template <typename T>
struct ResidualNorm {
  Norm<T> norm;
  T* sum;
  const T* x;
  const T* branch;
  DropoutMask dropout;

  template <int kSize>
  __device__ void operator()(const Line<kSize>& line) const {
    line.for_each([&](int64_t at, int64_t) {
      auto pack = load_numbers<T, kSize>(branch + at);
      drop(pack, dropout, at);
      const auto base = load_numbers<T, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) pack.values[j] += base.values[j];
      store_numbers<T, kSize>(sum + at, pack);
    });
    line.synchronize();  // every thread reads the row's first element
    norm(line);
  }
};

template <typename T>
struct NormBackward {
  using C = Compute<T>;
  T* dx;
  T* dbranch;
  C* parts;  // (blocks or groups, 2, width): sums of dy * normalised x, and of dy; null for none
  const T* dy;
  const T* x;
  const C* statistics;
  const C* weight;
  int64_t width;
  bool centered;
  DropoutMask dropout;

  // With n the normalised x and g = dy * weight:
  // dx = (g - mean(g) - n * mean(g * n)) / sqrt(variance + epsilon), without mean(g) if not
  // centered. `sums` (2, width) is the group's.
  template <int kSize>
  __device__ void take_row(const Line<kSize>& line, C* sums) const {
    const bool exists = line.last > 0;
    const C origin = centered && exists ? load(x + line.start) : C{0};
    const C middle = exists ? statistics[2 * line.row] : C{0};
    const C scale = exists ? statistics[2 * line.row + 1] : C{0};
    const auto normalized = [&](int64_t at) {
      auto pack = load_numbers<T, kSize>(x + at);
#pragma unroll
      for (int j = 0; j < kSize; ++j) pack.values[j] = (pack.values[j] - origin - middle) * scale;
      return pack;
    };
    const auto weighted = [&](const Pack<C, kSize>& upstream, int64_t column) {
      Pack<C, kSize> pack = upstream;
      if (weight == nullptr) return pack;
      const auto factor = load_pack<C, kSize>(weight + column);
#pragma unroll
      for (int j = 0; j < kSize; ++j) pack.values[j] *= factor.values[j];
      return pack;
    };
    C sum = 0, product_sum = 0;
    line.for_each([&](int64_t at, int64_t column) {
      const auto n = normalized(at), upstream = load_numbers<T, kSize>(dy + at);
      const auto g = weighted(upstream, column);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        sum += g.values[j];
        product_sum += g.values[j] * n.values[j];
      }
      if (sums == nullptr) return;
      auto dweight = load_pack<C, kSize>(sums + column);
      auto dbias = load_pack<C, kSize>(sums + width + column);
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        dweight.values[j] += upstream.values[j] * n.values[j];
        dbias.values[j] += upstream.values[j];
      }
      store_pack(sums + column, dweight);
      store_pack(sums + width + column, dbias);
    });
    if (dx == nullptr) return;
    const C mean = centered ? line.reduce(sum, Add{}, C{0}) / static_cast<C>(width) : C{0};
    const C product_mean = line.reduce(product_sum, Add{}, C{0}) / static_cast<C>(width);
    line.for_each([&](int64_t at, int64_t column) {
      const auto n = normalized(at);
      const auto upstream = load_numbers<T, kSize>(dy + at);
      auto pack = weighted(upstream, column);
#pragma unroll
      for (int j = 0; j < kSize; ++j)
        pack.values[j] = scale * (pack.values[j] - mean - n.values[j] * product_mean);
      store_numbers<T, kSize>(dx + at, pack);
      if (dbranch == nullptr) return;
      drop(pack, dropout, at);
      store_numbers<T, kSize>(dbranch + at, pack);
    });
  }
};

// The rows of a block in groups of threads, each of which has sums of its own for the columns: in
// shared memory, joined in the end, or in its part of a.parts.
template <int kSize, typename T>
__global__ void norm_backward_kernel(NormBackward<T> a, Pieces rows, RowPlan plan, bool shared) {
  using C = Compute<T>;
  GS_DYNAMIC_SHARED(C, scratch);
  const int64_t groups = kThreads / plan.members, group = threadIdx.x / plan.members;
  const int64_t size = 2 * a.width;
  C* sums = nullptr;
  if (a.parts != nullptr)
    sums = shared ? scratch + group * size : a.parts + (blockIdx.x * groups + group) * size;
  const int64_t member = threadIdx.x % plan.members;
  for (int64_t i = member * kSize; sums != nullptr && i < a.width; i += plan.members * kSize) {
    store_pack(sums + i, Pack<C, kSize>{});
    store_pack(sums + a.width + i, Pack<C, kSize>{});
  }
  for (int64_t task = blockIdx.x; task < plan.tasks; task += gridDim.x)
    a.take_row(line_of<kSize>(rows, plan, task), sums);
  if (sums == nullptr || !shared) return;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < size; i += kThreads) {
    C sum = 0;
    for (int64_t g = 0; g < groups; ++g) sum += scratch[g * size + i];
    a.parts[blockIdx.x * size + i] = sum;
  }
}

// The parts (parts, 2, width), summed.
template <typename C, typename T>
struct SumParts {
  T* dweight;
  T* dbias;
  const C* parts;
  int64_t width;

  __device__ void operator()(const Line<1>& line) const {
    double sum = 0;
    line.for_each([&](int64_t at, int64_t) { sum += static_cast<double>(parts[at]); });
    sum = line.reduce(sum, Add{}, 0.0);
    if (!line.leads) return;
    T* const y = line.row < width ? dweight : dbias;
    if (y != nullptr) store(y + line.row % width, static_cast<Compute<T>>(sum));
  }
};

int64_t width_of(const Array& x) { return x.shape()[x.rank() - 1]; }

template <typename T>
Norm<T> norm_of(Array& y, Array& statistics, const Array& x, const Array& weight, const Array& bias,
                NormOptions options) {
  return {elements_of<T>(y),
          statistics.data<Compute<T>>(),
          elements_of<T>(x),
          data_or_null<Compute<T>>(weight),
          data_or_null<Compute<T>>(bias),
          width_of(x),
          options};
}

template <typename T>
void run_backward(Cuda device, NormGradients& gradients, NormBackward<T> a, int64_t rows) {
  using C = Compute<T>;
  constexpr int64_t kBlocks = 396, kMostShared = 96 * 1024;
  const Pieces pieces = Pieces::whole(Rows{rows, a.width, 1});
  const RowPlan plan = plan_of(pieces, kPackSize<T>);
  const int64_t blocks = std::min(kBlocks, plan.tasks), groups = kThreads / plan.members;
  const bool sums = gradients.dweight.defined() || gradients.dbias.defined();
  const int64_t bytes = groups * 2 * a.width * static_cast<int64_t>(sizeof(C));
  const bool shared = sums && bytes <= kMostShared;
  const int64_t parts = shared ? blocks : blocks * groups;
  Array scratch;
  if (sums) {
    scratch = Array::empty(Shape{parts, 2, a.width}, dtype_of<C>, Device::cuda(device.index));
    a.parts = scratch.data<C>();
  }
  if (rows > 0) {
    const Grid grid{dim3(static_cast<unsigned>(blocks)), dim3(kThreads), shared ? bytes : 0};
    with_pack<kPackSize<T>>(plan, [&](auto size) {
      launch("layer_norm", device, grid, norm_backward_kernel<size, T>, a, pieces, plan, shared);
    });
  }
  if (!sums) return;
  const Array& any = gradients.dweight.defined() ? gradients.dweight : gradients.dbias;
  dispatch_element("layer_norm", any.dtype(), [&](auto zero) {
    using Y = decltype(zero);
    run_rows<1>("layer_norm", device, Pieces::whole(Rows{1, parts, 2 * a.width}),
                SumParts<C, Y>{elements_or_null<Y>(gradients.dweight),
                               elements_or_null<Y>(gradients.dbias), a.parts, a.width});
  });
}

}  // namespace

void layer_norm(Cuda device, Array& y, Array& statistics, const Array& x, const Array& weight,
                const Array& bias, NormOptions options) {
  if (x.elements() == 0) return;
  dispatch_element("layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Array factor = parameter_as<Compute<T>>(weight), shift = parameter_as<Compute<T>>(bias);
    run_rows<kPackSize<T>>("layer_norm", device,
                           Pieces::whole(Rows{statistics.shape()[0], width_of(x), 1}),
                           norm_of<T>(y, statistics, x, factor, shift, options));
  });
}

void residual_layer_norm(Cuda device, Array& y, Array& sum, Array& statistics, const Array& x,
                         const Array& branch, const DropoutMask& dropout, const Array& weight,
                         const Array& bias, NormOptions options) {
  if (x.elements() == 0) return;
  dispatch_element("residual_layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Array factor = parameter_as<Compute<T>>(weight), shift = parameter_as<Compute<T>>(bias);
    run_rows<kPackSize<T>>(
        "residual_layer_norm", device, Pieces::whole(Rows{statistics.shape()[0], width_of(x), 1}),
        ResidualNorm<T>{norm_of<T>(y, statistics, sum, factor, shift, options), elements_of<T>(sum),
                        elements_of<T>(x), elements_of<T>(branch), dropout});
  });
}

void layer_norm_backward(Cuda device, NormGradients& gradients, const Array& dy, const Array& x,
                         const Array& statistics, const Array& weight, NormOptions options,
                         const DropoutMask& dropout) {
  if (width_of(x) == 0) return;
  dispatch_element("layer_norm", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const Array factor = parameter_as<Compute<T>>(weight);
    run_backward<T>(device, gradients,
                    {elements_or_null<T>(gradients.dx), elements_or_null<T>(gradients.dbranch),
                     nullptr, elements_of<T>(dy), elements_of<T>(x), statistics.data<Compute<T>>(),
                     data_or_null<Compute<T>>(factor), width_of(x), options.centered, dropout},
                    statistics.shape()[0]);
  });
}

}  // namespace gs::backend
