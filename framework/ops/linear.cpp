#include "framework/ops/linear.h"

#include <vector>

#include "framework/backend/copy.h"
#include "framework/backend/gemm.h"
#include "framework/backend/sum_to.h"
#include "framework/core/profiler.h"

namespace gs {
namespace {

using backend::GemmSizes;

// (rows, columns) = op(a) op(b) + beta c, all of them plain matrices.
template <typename On>
void multiply(On on, Array& c, GemmSizes sizes, const Array& a, const Array& b) {
  dispatch_floating("linear", c.dtype(), [&](auto zero) {
    using T = decltype(zero);
    gemm(on, sizes, a.data<T>(), b.data<T>(), c.data<T>());
  });
}

void check_arguments(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(weight.rank() == 2, "linear: the weight must be (out, in), got {}", weight.shape());
  check(x.rank() >= 1 && x.shape().size(-1) == weight.shape()[1],
        "linear: the last size of the input must be {}, got {}; weights are (out, in), here {}",
        weight.shape()[1], x.shape(), weight.shape());
  check(x.dtype() == weight.dtype() && x.device() == weight.device(),
        "linear: input is {} on {}, weight {} on {}; convert one", x.dtype(), x.device(),
        weight.dtype(), weight.device());
  if (!bias.defined()) return;
  check(bias.shape() == Shape({weight.shape()[0]}) && bias.dtype() == x.dtype() &&
            bias.device() == x.device(),
        "linear: the bias must be [{}] {}, got {} {}", weight.shape()[0], x.dtype(), bias.shape(),
        bias.dtype());
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const OperationTimer timer("linear");
  check_arguments(x, weight, bias);
  const int64_t in = weight.shape()[1], out = weight.shape()[0];
  const Shape shape = x.shape().with(x.rank() - 1, out);
  const int64_t rows = Rows::of_last_dimension(shape).count();
  const int64_t in_stride = std::max<int64_t>(1, in), out_stride = std::max<int64_t>(1, out);

  Array y = Array::empty(shape, x.dtype(), x.device());
  on_device(x.device(), [&](auto on) {
    // The product adds to the bias, which stands in every row of y.
    if (bias.defined()) backend::copy_blocks(on, y, bias.value(), {rows, out, 0, out, 0, 0});
    const GemmSizes sizes{.m = rows,
                          .n = out,
                          .k = in,
                          .transpose_b = true,
                          .a_stride = in_stride,
                          .b_stride = in_stride,
                          .c_stride = out_stride,
                          .beta = bias.defined() ? 1.0 : 0.0};
    multiply(on, y, sizes, x.value(), weight.value());
  });
  // dx = dy weight, dweight = dy^T x, dbias = sum of the rows of dy
  return record("linear", y, {x, weight, bias},
                [x = Saved(x.value()), weight = Saved(weight.value()), in, out, rows, in_stride,
                 out_stride](const Array& dy, const Needs& needs) {
                  Gradients gradients(3);
                  on_device(dy.device(), [&](auto on) {
                    if (needs[0]) {
                      Array& dx = gradients[0] = Array::like(x.value());
                      multiply(on, dx,
                               {.m = rows,
                                .n = in,
                                .k = out,
                                .a_stride = out_stride,
                                .b_stride = in_stride,
                                .c_stride = in_stride},
                               dy, weight.value());
                    }
                    if (needs[1]) {
                      Array& dweight = gradients[1] = Array::like(weight.value());
                      multiply(on, dweight,
                               {.m = out,
                                .n = in,
                                .k = rows,
                                .transpose_a = true,
                                .a_stride = out_stride,
                                .b_stride = in_stride,
                                .c_stride = in_stride},
                               dy, x.value());
                    }
                    if (needs[2]) {
                      Array& dbias = gradients[2] = Array::empty({out}, dy.dtype(), dy.device());
                      backend::sum_to(on, dbias, dy);
                    }
                  });
                  return gradients;
                });
}

}  // namespace gs
