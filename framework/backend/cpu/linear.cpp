#include "framework/backend/linear.h"

#include <algorithm>

#include "framework/backend/cpu/data_or_null.h"
#include "framework/backend/gemm.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/linear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/drop-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by the product. Bias, ReLU and dropout go over a block of its rows while that is in the
// second-level cache: measured against a bias copied into y beforehand, a layer of 128 x 128 takes
// 22 % less time, one of 256 x 1024 8 %.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
void add_bias(T* y, const T* bias, bool relu, int64_t width) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, width, [&](auto at) HWY_ATTR {
    auto value = load(d, y, at);
    if (bias != nullptr) value = hn::Add(value, load(d, bias, at));
    if (relu) value = hn::IfThenZeroElse(hn::Le(value, hn::Zero(d)), value);  // NaN stays
    store(d, value, y, at);
  });
}

// Rows first to last - 1 of y.
void finish_rows(Array& y, const Array& bias, const LinearFinish& finish, int64_t first,
                 int64_t last) {
  dispatch_floating("linear", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = y.shape()[y.rank() - 1];
    T* const out = y.data<T>();
    const T* const added = data_or_null<T>(bias);
    for (int64_t row = first; row < last; ++row)
      add_bias(out + row * width, added, finish.relu, width);
    if (finish.dropout.threshold == 0) return;
    T* const start = out + first * width;
    drop(start, start, finish.dropout, first * width, (last - first) * width);
  });
}

void relu_gradients(Array& dproduct, const Array& dy, const Array& y, double scale, int64_t first,
                    int64_t last) {
  dispatch_floating("linear", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const hn::ScalableTag<T> d;
    const T* const upstream = dy.data<T>() + first;
    const T* const value = y.data<T>() + first;
    T* const out = dproduct.data<T>() + first;
    const auto factor = hn::Set(d, static_cast<T>(scale));
    for_each_vector(d, last - first, [&](auto at) HWY_ATTR {
      const auto gradient = hn::Mul(load(d, upstream, at), factor);
      store(d, hn::IfThenZeroElse(hn::Le(load(d, value, at), hn::Zero(d)), gradient), out, at);
    });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(finish_rows);
HWY_EXPORT(relu_gradients);

constexpr int64_t kGrain = 1 << 14;

// Rows first to last - 1 of y, before the finish.
void multiply(Array& y, const Array& x, const Array& weight, int64_t first, int64_t last) {
  const int64_t in = weight.shape()[1], out = weight.shape()[0];
  const GemmSizes sizes{.m = last - first,
                        .n = out,
                        .k = in,
                        .transpose_b = true,
                        .a_stride = std::max<int64_t>(1, in),
                        .b_stride = std::max<int64_t>(1, in),
                        .c_stride = out};
  dispatch_floating("linear", y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    gemm(Cpu(), sizes, x.data<T>() + first * in, weight.data<T>(), y.data<T>() + first * out);
  });
}

}  // namespace

void linear(Cpu, Array& y, const Array& x, const Array& weight, const Array& bias,
            const LinearFinish& finish) {
  if (y.elements() == 0) return;
  const int64_t out = weight.shape()[0], rows = y.elements() / out;
  const bool finishes = bias.defined() || finish.relu || finish.dropout.threshold > 0;
  const int64_t grain = std::max<int64_t>(1, kGrain / out);
  if (!finishes) return multiply(y, x, weight, 0, rows);
  if (rows < out) {  // the product is split by columns
    multiply(y, x, weight, 0, rows);
    parallel_for(0, rows, grain, [&](int64_t first, int64_t last) {
      HWY_DYNAMIC_DISPATCH(finish_rows)(y, bias, finish, first, last);
    });
    return;
  }
  constexpr int64_t kBlock = 512;
  prepare_gemm(Cpu(), x.dtype());
  parallel_for(0, rows, std::max<int64_t>(16, grain), [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; block += kBlock) {
      const int64_t end = std::min(last, block + kBlock);
      multiply(y, x, weight, block, end);
      HWY_DYNAMIC_DISPATCH(finish_rows)(y, bias, finish, block, end);
    }
  });
}

void linear_relu_backward(Cpu, Array& dproduct, const Array& dy, const Array& y, double scale) {
  parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(relu_gradients)(dproduct, dy, y, scale, first, last);
  });
}

}  // namespace gs::backend
#endif
