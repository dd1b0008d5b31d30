#include "framework/backend/linear.h"

#include <array>

#include "framework/backend/cuda/linear_rows.h"
#include "framework/backend/cuda/map.cuh"
#include "framework/backend/cuda/product.h"

// Bound by the product. Bias and ReLU are part of it where the library can do that; what is left
// of the finish goes over y once more.
namespace gs::backend {
namespace {

// Elements that share the words of one random block.
constexpr int kBlock = 4;

template <typename T>
struct FinishElement {
  const T* bias;  // or null
  bool relu;
  DropoutMask dropout;

  __device__ Compute<T> operator()(Compute<T> value, int64_t column, uint32_t word) const {
    if (bias != nullptr) value += load(bias + column);
    if (relu && value <= 0) value = 0;  // NaN stays
    if (dropout.threshold == 0) return value;
    return dropout.keeps_word(word) ? value * static_cast<Compute<T>>(dropout.scale) : 0;
  }
};

template <typename T>
__global__ void finish_kernel(T* y, int64_t count, int64_t width, FinishElement<T> finish) {
  for (int64_t block = first_element(); block * kBlock < count; block += element_step()) {
    const int64_t first = block * kBlock;
    std::array<uint32_t, 4> words{};
    if (finish.dropout.threshold > 0) words = finish.dropout.stream.words(block);
    int64_t column = first % width;
    const auto finish_element = [&](T* place, int i) {
      store(place, finish(load(place), column, words[i]));
      if (++column == width) column = 0;
    };
    if (first + kBlock <= count) {
      Pack<T, kBlock> pack = load_pack<T, kBlock>(y + first);
#pragma unroll
      for (int i = 0; i < kBlock; ++i) finish_element(pack.values + i, i);
      store_pack(y + first, pack);
    } else {
      for (int i = 0; first + i < count; ++i) finish_element(y + first + i, i);
    }
  }
}

// y = finish(y + bias) without what has been done.
void finish_rows(Cuda device, const LinearRows& rows, const LinearFinish& finish) {
  if (rows.bias == nullptr && !finish.relu && finish.dropout.threshold == 0) return;
  dispatch_element("linear", rows.dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t count = rows.rows * rows.out;
    launch("linear", device, grid_of(count, kBlock), finish_kernel<T>, static_cast<T*>(rows.y),
           count, rows.out,
           FinishElement<T>{static_cast<const T*>(rows.bias), finish.relu, finish.dropout});
  });
}

template <typename T>
struct ReluGradient {
  Compute<T> scale;
  __device__ Compute<T> operator()(Compute<T> dy, Compute<T> y) const {
    return y <= 0 ? Compute<T>(0) : dy * scale;
  }
};

}  // namespace

void linear_rows(Cuda device, const LinearRows& rows, const LinearFinish& finish) {
  if (rows.rows == 0 || rows.out == 0) return;
  if (rows.in == 0) {  // no product: bias and finish of zeros
    const auto bytes = static_cast<size_t>(rows.rows * rows.out * size_of(rows.dtype));
    check_cuda(cudaMemsetAsync(rows.y, 0, bytes, stream_of(device)), "linear");
    return finish_rows(device, rows, finish);
  }
  Product product{.sizes = {.m = rows.rows,
                            .n = rows.out,
                            .k = rows.in,
                            .transpose_b = true,
                            .a_stride = rows.in,
                            .b_stride = rows.in,
                            .c_stride = rows.out},
                  .in = rows.dtype,
                  .out = rows.dtype};
  const bool has_bias = rows.bias != nullptr;
  const auto multiply_with = [&](bool bias, bool relu) {
    product.bias = bias;
    product.relu = relu;
    return multiply(device, "linear", product, rows.x, rows.weight, rows.y, rows.bias);
  };
  bool done = multiply_with(has_bias, finish.relu);
  if (!done && has_bias && finish.relu) done = multiply_with(true, false);
  if (!done) done = multiply_with(false, false);
  check(done,
        "linear: cuBLASLt has no algorithm for {} x {} x {} in {}; pad them to multiples of 8",
        rows.rows, rows.out, rows.in, rows.dtype);
  LinearRows rest = rows;
  if (product.bias) rest.bias = nullptr;
  finish_rows(device, rest, {.relu = finish.relu && !product.relu, .dropout = finish.dropout});
}

void linear(Cuda device, Array& y, const Array& x, const Array& weight, const Array& bias,
            const LinearFinish& finish) {
  if (y.elements() == 0) return;
  linear_rows(device,
              {.y = y.raw(),
               .x = x.raw(),
               .weight = weight.raw(),
               .bias = bias.defined() ? bias.raw() : nullptr,
               .rows = y.elements() / weight.shape()[0],
               .in = weight.shape()[1],
               .out = weight.shape()[0],
               .dtype = y.dtype()},
              finish);
}

void linear_relu_backward(Cuda device, Array& dproduct, const Array& dy, const Array& y,
                          double scale) {
  dispatch_element("linear", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    map("linear", device, y.elements(), elements_of<T>(dproduct),
        ReluGradient<T>{static_cast<Compute<T>>(scale)}, elements_of<T>(dy), elements_of<T>(y));
  });
}

}  // namespace gs::backend
