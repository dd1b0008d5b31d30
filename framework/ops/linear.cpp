#include "framework/ops/linear.h"

#include "framework/backend/gemm.h"
#include "framework/backend/linear.h"
#include "framework/backend/sum_to.h"
#include "framework/core/profiler.h"
#include "framework/ops/linear_checks.h"

namespace gs {
namespace {

using backend::GemmSizes;

// (rows, columns) = op(a) op(b) + beta c, all of them plain matrices; of bfloat16, c may be
// float32.
template <typename On>
void multiply(On on, Array& c, GemmSizes sizes, const Array& a, const Array& b) {
  if constexpr (std::is_same_v<On, Cuda>) {
    if (a.dtype() == kBFloat16) {
      const BFloat16 *const from = a.data<BFloat16>(), *const by = b.data<BFloat16>();
      return c.dtype() == kBFloat16 ? gemm(on, sizes, from, by, c.data<BFloat16>())
                                    : gemm(on, sizes, from, by, c.data<float>());
    }
  }
  dispatch_floating("linear", c.dtype(), [&](auto zero) {
    using T = decltype(zero);
    gemm(on, sizes, a.data<T>(), b.data<T>(), c.data<T>());
  });
}

// `weight` and `bias` are in the type of x.
Array product(const Array& x, const Array& weight, const Array& bias,
              const backend::LinearFinish& finish) {
  Array y = Array::empty(x.shape().with(x.rank() - 1, weight.shape()[0]), x.dtype(), x.device());
  on_device(x.device(), [&](auto on) { backend::linear(on, y, x, weight, bias, finish); });
  return y;
}

// The gradient of input `i`, a product of the shape and type given: added to the sum of those that
// came before, if there is one.
template <typename On>
Array product_gradient(On on, GemmSizes sizes, const Array& a, const Array& b, const Shape& shape,
                       DType dtype, const Needs& needs, size_t i) {
  Array gradient = needs.take_sum(i);
  sizes.beta = gradient.defined() ? 1 : 0;
  if (!gradient.defined()) gradient = Array::empty(shape, dtype, a.device());
  multiply(on, gradient, sizes, a, b);
  return gradient;
}

// With dy the gradient of the product and the bias:
// dx = dy weight, dweight = dy^T x, dbias = sum of the rows of dy
// `parameters` is the type of the latter two.
Gradients gradients_of(const Array& dy, const Array& x, const Array& weight, DType parameters,
                       const Needs& needs) {
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
      gradients[0] = product_gradient(on, sizes, dy, weight, x.shape(), x.dtype(), needs, 0);
    }
    if (needs[1]) {
      const GemmSizes sizes{.m = out,
                            .n = in,
                            .k = rows,
                            .transpose_a = true,
                            .a_stride = out_stride,
                            .b_stride = in_stride,
                            .c_stride = in_stride};
      gradients[1] = product_gradient(on, sizes, dy, x, weight.shape(), parameters, needs, 1);
    }
    if (needs[2]) {
      gradients[2] = Array::empty({out}, parameters, dy.device());
      backend::sum_to(on, gradients[2], dy);
    }
  });
  return gradients;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const OperationTimer timer("linear");
  check_linear("linear", x, weight, bias);
  const Array factor = in_type_of(x, weight);  // backward uses it again
  return record("linear", product(x.value(), factor, in_type_of(x, bias), {}), {x, weight, bias},
                [x = Saved(x.value()), factor = Saved(factor), parameters = weight.dtype()](
                    const Array& dy, const Needs& needs) {
                  return gradients_of(dy, x.value(), factor.value(), parameters, needs);
                });
}

Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, double dropout,
                   bool training, Generator& generator) {
  const OperationTimer timer("linear_relu");
  check_linear("linear_relu", x, weight, bias);
  check(dropout >= 0 && dropout <= 1, "linear_relu: dropout must be in [0, 1], got {}", dropout);
  backend::LinearFinish finish{.relu = true, .dropout = {}};
  if (training && dropout > 0) finish.dropout = backend::DropoutMask::of(dropout, generator.next());
  const Array factor = in_type_of(x, weight);
  const Array y = product(x.value(), factor, in_type_of(x, bias), finish);
  return record(
      "linear_relu", y, {x, weight, bias},
      [x = Saved(x.value()), factor = Saved(factor), y = Saved(y), parameters = weight.dtype(),
       scale = finish.dropout.scale](const Array& dy, const Needs& needs) {
        Array dproduct = Array::like(dy);
        on_device(dy.device(), [&](auto on) {
          backend::linear_relu_backward(on, dproduct, dy, y.value(), scale);
        });
        return gradients_of(dproduct, x.value(), factor.value(), parameters, needs);
      });
}

}  // namespace gs
