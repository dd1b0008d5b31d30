#include "framework/ops/linear.h"

#include "framework/backend/gemm.h"
#include "framework/backend/linear.h"
#include "framework/backend/sum_to.h"
#include "framework/core/profiler.h"
#include "framework/ops/linear_checks.h"

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

Array product(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const backend::LinearFinish& finish) {
  Array y = Array::empty(x.shape().with(x.rank() - 1, weight.shape()[0]), x.dtype(), x.device());
  on_device(x.device(), [&](auto on) {
    backend::linear(on, y, x.value(), weight.value(), bias.value(), finish);
  });
  return y;
}

// The gradient of input `i`, a product: added to the sum of those that came before, if there is
// one.
template <typename On>
Array product_gradient(On on, GemmSizes sizes, const Array& a, const Array& b, const Array& input,
                       const Needs& needs, size_t i) {
  Array gradient = needs.take_sum(i);
  sizes.beta = gradient.defined() ? 1 : 0;
  if (!gradient.defined()) gradient = Array::like(input);
  multiply(on, gradient, sizes, a, b);
  return gradient;
}

// With dy the gradient of the product and the bias:
// dx = dy weight, dweight = dy^T x, dbias = sum of the rows of dy
Gradients gradients_of(const Array& dy, const Array& x, const Array& weight, const Needs& needs) {
  const int64_t in = weight.shape()[1], out = weight.shape()[0];
  const int64_t rows = Rows::of_last_dimension(dy.shape()).count();
  const int64_t in_stride = std::max<int64_t>(1, in), out_stride = std::max<int64_t>(1, out);
  Gradients gradients(3);
  on_device(dy.device(), [&](auto on) {
    if (needs[0]) {
      const GemmSizes sizes{.m = rows,
                            .n = in,
                            .k = out,
                            .a_stride = out_stride,
                            .b_stride = in_stride,
                            .c_stride = in_stride};
      gradients[0] = product_gradient(on, sizes, dy, weight, x, needs, 0);
    }
    if (needs[1]) {
      const GemmSizes sizes{.m = out,
                            .n = in,
                            .k = rows,
                            .transpose_a = true,
                            .a_stride = out_stride,
                            .b_stride = in_stride,
                            .c_stride = in_stride};
      gradients[1] = product_gradient(on, sizes, dy, x, weight, needs, 1);
    }
    if (needs[2]) {
      gradients[2] = Array::empty({out}, dy.dtype(), dy.device());
      backend::sum_to(on, gradients[2], dy);
    }
  });
  return gradients;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const OperationTimer timer("linear");
  check_linear("linear", x, weight, bias);
  return record(
      "linear", product(x, weight, bias, {}), {x, weight, bias},
      [x = Saved(x.value()), weight = Saved(weight.value())](const Array& dy, const Needs& needs) {
        return gradients_of(dy, x.value(), weight.value(), needs);
      });
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, double dropout,
                   bool training, Generator& generator) {
  const OperationTimer timer("linear_relu");
  check_linear("linear_relu", x, weight, bias);
  check(dropout >= 0 && dropout <= 1, "linear_relu: dropout must be in [0, 1], got {}", dropout);
  backend::LinearFinish finish{.relu = true, .dropout = {}};
  if (training && dropout > 0) finish.dropout = backend::DropoutMask::of(dropout, generator.next());
  const Array y = product(x, weight, bias, finish);
  return record("linear_relu", y, {x, weight, bias},
                [x = Saved(x.value()), weight = Saved(weight.value()), y = Saved(y),
                 scale = finish.dropout.scale](const Array& dy, const Needs& needs) {
                  Array dproduct = Array::like(dy);
                  on_device(dy.device(), [&](auto on) {
                    backend::linear_relu_backward(on, dproduct, dy, y.value(), scale);
                  });
                  return gradients_of(dproduct, x.value(), weight.value(), needs);
                });
}

}  // namespace gs
