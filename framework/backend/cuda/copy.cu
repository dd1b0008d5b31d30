#include "framework/backend/copy.h"

#include "framework/backend/convert.h"
#include "framework/backend/cuda/block.cuh"
#include "framework/backend/cuda/first_place.cuh"
#include "framework/backend/cuda/map.cuh"
#include "framework/backend/element_size.h"

// Bound by memory: each reads and writes every element once.
namespace gs::backend {
namespace {

template <typename T>
struct Constant {
  T value;
  __device__ T operator()() const { return value; }
};

template <typename To>
struct Convert {
  template <typename From>
  __device__ To operator()(From x) const {
    return convert<To>(x);
  }
};

struct NotFinite {
  template <typename T>
  __device__ bool operator()(T stored) const {
    const Compute<T> difference = load(&stored) - load(&stored);
    return difference != 0;  // NaN for infinity and NaN
  }
};

// Blocks of packs: the sizes of `blocks` count packs.
template <typename T, int kSize>
__global__ void copy_blocks_kernel(T* y, const T* x, Blocks blocks) {
  for (int64_t i = first_element(); i < blocks.rows * blocks.length; i += element_step()) {
    const int64_t row = i / blocks.length, column = i - row * blocks.length;
    const int64_t to = blocks.y_start + row * blocks.y_stride + column;
    const int64_t from = blocks.x_start + row * blocks.x_stride + column;
    store_pack(y + to * kSize, load_pack<T, kSize>(x + from * kSize));
  }
}

template <typename T, int kSize>
__global__ void accumulate_blocks_kernel(T* y, const T* x, Blocks blocks) {
  for (int64_t i = first_element(); i < blocks.rows * blocks.length; i += element_step()) {
    const int64_t row = i / blocks.length, column = i - row * blocks.length;
    T* const to = y + (blocks.y_start + row * blocks.y_stride + column) * kSize;
    const int64_t from = blocks.x_start + row * blocks.x_stride + column;
    auto sum = load_pack<T, kSize>(to);
    const auto values = load_pack<T, kSize>(x + from * kSize);
#pragma unroll
    for (int j = 0; j < kSize; ++j)
      store(sum.values + j, load(sum.values + j) + load(values.values + j));
    store_pack(to, sum);
  }
}

// Calls run(blocks, size) with the blocks in packs of `size` elements, 16 bytes where they allow
// it.
template <typename T, typename Run>
void with_packs(Blocks blocks, Run run) {
  if (blocks.rows == 0 || blocks.length == 0) return;
  if (blocks.rows == 1) blocks.y_stride = blocks.x_stride = 0;
  const auto in_packs_of = [&](int64_t size) {
    return Blocks{blocks.rows,           blocks.length / size,
                  blocks.y_start / size, blocks.y_stride / size,
                  blocks.x_start / size, blocks.x_stride / size};
  };
  constexpr int kSize = kPackSize<T>;
  const int64_t all =
      blocks.length | blocks.y_start | blocks.y_stride | blocks.x_start | blocks.x_stride;
  if (all % kSize == 0) return run(in_packs_of(kSize), std::integral_constant<int, kSize>());
  run(blocks, std::integral_constant<int, 1>());
}

}  // namespace

void fill(Cuda device, Array& y, double value) {
  dispatch_stored(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map("fill", device, y.elements(), y.data<T>(), Constant<T>{convert<T>(value)});
  });
}

void copy(Cuda device, Array& y, const Array& x) {
  if (y.bytes() == 0) return;
  check_cuda(cudaMemcpyAsync(y.raw(), x.raw(), static_cast<size_t>(y.bytes()),
                             cudaMemcpyDeviceToDevice, stream_of(device)),
             "copy");
}

void cast(Cuda device, Array& y, const Array& x) {
  if (y.dtype() == x.dtype()) return copy(device, y, x);
  dispatch_stored(y.dtype(), [&](auto y_zero) {
    dispatch_stored(x.dtype(), [&](auto x_zero) {
      using To = decltype(y_zero);
      using From = decltype(x_zero);
      map("cast", device, y.elements(), y.data<To>(), Convert<To>(), x.data<From>());
    });
  });
}

void copy_blocks(Cuda device, Array& y, const Array& x, Blocks blocks) {
  dispatch_element_size(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_packs<T>(blocks, [&](const Blocks& packs, auto size) {
      launch("copy_blocks", device, grid_of(packs.rows * packs.length), copy_blocks_kernel<T, size>,
             static_cast<T*>(y.raw()), static_cast<const T*>(x.raw()), packs);
    });
  });
}

void accumulate(Cuda device, Array& y, const Array& x) {
  dispatch_element("accumulate", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const sum = elements_of<T>(y);
    map("accumulate", device, y.elements(), sum, Add(), sum, elements_of<T>(x));
  });
}

void accumulate_blocks(Cuda device, Array& y, const Array& x, Blocks blocks) {
  dispatch_element("accumulate", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    with_packs<T>(blocks, [&](const Blocks& packs, auto size) {
      launch("accumulate_blocks", device, grid_of(packs.rows * packs.length),
             accumulate_blocks_kernel<T, size>, elements_of<T>(y), elements_of<T>(x), packs);
    });
  });
}

int64_t first_non_finite(Cuda device, const Array& x) {
  if (!is_floating(x.dtype()) && x.dtype() != kBFloat16) return -1;
  int64_t place = -1;
  dispatch_element("first_non_finite", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    place = first_place("first_non_finite", device, elements_of<T>(x), x.elements(), NotFinite());
  });
  return place;
}

}  // namespace gs::backend
