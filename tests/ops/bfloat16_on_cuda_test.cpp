// Operations over activations in bfloat16 with parameters in float32 on a CUDA device, against the
// same operations in float64 on the CPU over the same values.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/cast.h"
#include "framework/ops/dropout.h"
#include "framework/ops/history_attention.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/linear.h"
#include "framework/ops/linear_cross_entropy.h"
#include "framework/ops/matmul.h"
#include "framework/ops/reduce.h"
#include "framework/ops/residual.h"
#include "framework/ops/rms_norm.h"
#include "framework/ops/softmax.h"
#include "framework/ops/top_log_softmax.h"
#include "framework/ops/unary.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::random_tensor;
using Tensors = std::vector<Tensor>;
using Operation = std::function<Tensor(const Tensors& inputs)>;
using Bfloat16OnCuda = test::CudaTest;

constexpr double kRounding = 0x1p-8;  // twice what one rounding to bfloat16 changes, relatively
constexpr bool kTraining = true;

// float64 values that bfloat16 has.
Tensor rounded(const Tensor& x) { return Tensor(x.value().to(kBFloat16).to(kFloat64)); }
Tensor activations(const Shape& shape, uint64_t seed) {
  return rounded(random_tensor<double>(shape, seed));
}
// Those that float32 has: operations that do not multiply matrices must not round them further.
Tensor parameters(const Shape& shape, uint64_t seed) {
  return Tensor(random_tensor<double>(shape, seed).value().to(kFloat32).to(kFloat64));
}

// Each element by itself, but for those that are small beside the others.
void expect_close(const std::string& what, const Tensor& actual, const Tensor& expected,
                  double tolerance) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = actual.values<double>(), b = expected.values<double>();
  double squares = 0;
  for (const double value : b) squares += value * value;
  const double typical = std::sqrt(squares / std::max<double>(1, static_cast<double>(b.size())));
  for (size_t i = 0; i < b.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(std::abs(b[i]), typical))
        << what << ", element " << i;
  }
}

struct Case {
  std::string name;
  Operation operation;  // over activations, then parameters
  Tensors activations, parameters;
  DType type = kBFloat16;    // of the result
  double tolerance = 1;      // of the result and the gradients of activations, in roundings
  double parameters_by = 1;  // of the gradients of parameters
};

void check_mixed(const Case& c) {
  SCOPED_TRACE(c.name);
  Tensors leaves, inputs, reference_leaves;
  for (const Tensor& x : c.activations) {
    reference_leaves.push_back(Tensor(x.value().clone()).set_needs_grad());
    leaves.push_back(Tensor(x.value().to(kFloat32).to(Device::cuda())).set_needs_grad());
    inputs.push_back(cast(leaves.back(), kBFloat16));
  }
  for (const Tensor& x : c.parameters) {
    reference_leaves.push_back(Tensor(x.value().clone()).set_needs_grad());
    leaves.push_back(Tensor(x.value().to(kFloat32).to(Device::cuda())).set_needs_grad());
    inputs.push_back(leaves.back());
  }
  const Tensor y = c.operation(inputs), expected = c.operation(reference_leaves);
  EXPECT_EQ(y.dtype(), c.type);
  EXPECT_EQ(y.device(), Device::cuda());
  expect_close("result", y, expected, c.tolerance * kRounding);
  const Tensor upstream = activations(expected.shape(), 99);
  expected.backward(upstream);
  y.backward(Tensor(upstream.value().to(c.type).to(Device::cuda())));
  for (size_t i = 0; i < leaves.size(); ++i) {
    ASSERT_TRUE(leaves[i].gradient().defined());
    EXPECT_EQ(leaves[i].gradient().dtype(), kFloat32);
    const double by = i < c.activations.size() ? c.tolerance : c.parameters_by;
    expect_close("gradient " + std::to_string(i), leaves[i].gradient(),
                 reference_leaves[i].gradient(), by * kRounding);
  }
}

// Of parameters, exact but for the order of a float32 sum.
constexpr double kExact = 1e-5 / kRounding;

TEST_F(Bfloat16OnCuda, LinearLayers) {
  constexpr double kTwo = 2;  // where the product has no place for a bias, it is rounded before
  const Shape sizes[] = {{5, 16, 24}, {33, 17, 9}, {1, 8, 8}, {0, 8, 8}, {3, 8, 0}};
  for (const Shape& size : sizes) {
    const Tensors x{activations({size[0], size[1]}, 1)};
    const Tensors weights{activations({size[2], size[1]}, 2), activations({size[2]}, 3)};
    check_mixed({"linear", [](const Tensors& in) { return linear(in[0], in[1], in[2]); }, x,
                 weights, kBFloat16, kTwo, kExact});
    check_mixed({"linear_relu", [](const Tensors& in) { return linear_relu(in[0], in[1], in[2]); },
                 x, weights, kBFloat16, kTwo, kExact});
  }
  // The second gradient is added to the first in float32.
  check_mixed({"linear twice",
               [](const Tensors& in) { return linear(in[0], in[1]) + linear(in[0], in[1]); },
               {activations({2, 3, 16}, 1)},
               {activations({8, 16}, 2)},
               kBFloat16,
               kTwo,
               kExact});
  check_mixed({"linear of a vector",
               [](const Tensors& in) { return linear(in[0], in[1], in[2]); },
               {activations({16}, 1)},
               {activations({8, 16}, 2), activations({8}, 3)},
               kBFloat16,
               kTwo,
               kExact});
}

// A weight is rounded for the product alone, to nearest.
TEST_F(Bfloat16OnCuda, LinearRoundsItsWeight) {
  const Tensor x = cast(Tensor::of<float>({1, 1}, {1}).to(Device::cuda()), kBFloat16);
  Tensor weight = Tensor::of<float>({3, 1}, {1 + 0x1p-9f, 1 + 0x1.8p-8f, -3.1415927f});
  weight = weight.to(Device::cuda());
  EXPECT_EQ(linear(x, weight).values<double>(), (std::vector<double>{1, 1 + 0x1p-7, -3.140625}));
  EXPECT_EQ(weight.values<float>()[0], 1 + 0x1p-9f);
}

TEST_F(Bfloat16OnCuda, Norms) {
  for (const int64_t width : {7, 64, 1032}) {
    const Tensors x{activations({5, width}, 1)};
    const Tensor weight = parameters({width}, 2), bias = parameters({width}, 3);
    check_mixed({"layer_norm",
                 [](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); },
                 x,
                 {weight, bias},
                 kBFloat16,
                 1,
                 10 * kExact});
    check_mixed({"rms_norm",
                 [](const Tensors& in) { return rms_norm(in[0], in[1]); },
                 x,
                 {weight},
                 kBFloat16,
                 1,
                 10 * kExact});
    check_mixed({"residual_layer_norm",  // the sum is rounded, too
                 [](const Tensors& in) {
                   Generator generator(3);
                   return residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5, 0.3, kTraining,
                                              generator);
                 },
                 {x[0], activations({5, width}, 4)},
                 {weight, bias},
                 kBFloat16,
                 4,
                 4});
  }
}

TEST_F(Bfloat16OnCuda, Elements) {
  const Tensors two{activations({6, 50}, 1), activations({6, 50}, 2)};
  check_mixed({"residual",
               [](const Tensors& in) {
                 Generator generator(3);
                 return residual(in[0], in[1], 0.3, kTraining, generator);
               },
               two,
               {}});
  check_mixed({"dropout",
               [](const Tensors& in) {
                 Generator generator(4);
                 return dropout(in[0], 0.3, kTraining, generator);
               },
               {two[0]},
               {}});
  check_mixed({"gelu", [](const Tensors& in) { return gelu(in[0]); }, {two[0]}, {}});
  check_mixed(
      {"softmax", [](const Tensors& in) { return softmax(in[0]); }, {two[0]}, {}, kBFloat16, 2});
  check_mixed({"times", [](const Tensors& in) { return in[0] * in[1]; }, two, {}});
}

TEST_F(Bfloat16OnCuda, Matmul) {
  check_mixed({"matmul",
               [](const Tensors& in) { return matmul(in[0], in[1], {.transpose_b = true}); },
               {activations({2, 5, 16}, 1), activations({2, 8, 16}, 2)},
               {}});
  check_mixed({"matmul of a broadcast matrix",
               [](const Tensors& in) { return matmul(in[0], in[1]); },
               {activations({40, 3, 8}, 1), activations({8, 8}, 2)},
               {}});
}

TEST_F(Bfloat16OnCuda, Reductions) {
  const Tensor x = activations({6, 50}, 1);
  check_mixed({"sum", [](const Tensors& in) { return sum(in[0]); }, {x}, {}});
  check_mixed(
      {"mean", [](const Tensors& in) { return mean(in[0], {.dimensions = {0}}); }, {x}, {}});
  check_mixed({"variance",
               [](const Tensors& in) { return variance(in[0], {.dimensions = {1}}); },
               {x},
               {},
               kBFloat16,
               2});
  check_mixed({"max", [](const Tensors& in) { return max(in[0], {.dimensions = {1}}); }, {x}, {}});
}

TEST_F(Bfloat16OnCuda, Attention) {
  for (const bool causal : {false, true}) {
    check_mixed({"packed_attention",  // its gradient reads the rounded output
                 [causal](const Tensors& in) {
                   const std::vector<int32_t> offsets{0, 3, 3, 40};
                   AttentionOptions options;
                   options.heads = 2;
                   options.causal = causal;
                   return packed_attention(in[0], offsets, in[1], in[2], offsets, options).output;
                 },
                 {activations({40, 16}, 1), activations({40, 16}, 2), activations({40, 16}, 3)},
                 {},
                 kBFloat16,
                 6});
  }
}

// The logits are rounded on the way, the loss and its sums are not.
TEST_F(Bfloat16OnCuda, LinearCrossEntropy) {
  for (const bool has_bias : {false, true}) {
    const auto loss_of = [&](const Tensors& in) {
      Tensor targets = Tensor::of<int32_t>({6}, {0, 22, 5, -1, 7, 5});
      targets = targets.to(in[0].device());
      const Loss loss = linear_cross_entropy(in[0], in[1], has_bias ? in[2] : Tensor(), targets,
                                             {.ignore_index = -1, .label_smoothing = 0.1});
      EXPECT_EQ(int64_t{loss.count}, 5);
      return loss.sum;
    };
    Tensors weights{activations({23, 16}, 2)};
    if (has_bias) weights.push_back(activations({23}, 3));
    check_mixed(
        {"linear_cross_entropy", loss_of, {activations({6, 16}, 1)}, weights, kFloat32, 8, 8});
  }
}

TEST_F(Bfloat16OnCuda, Decoding) {
  const NoGrad no_grad;
  const Tensor query = activations({3, 16}, 1), key = activations({3, 16}, 2),
               value = activations({3, 16}, 3), weight = activations({16, 9}, 4);
  const auto there = [](const Tensor& x) {
    return cast(Tensor(x.value().to(kFloat32)).to(Device::cuda()), kBFloat16);
  };
  const std::vector<int32_t> rows{0, 1, 2, 1, 2, 2};
  const auto attend = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return history_attention(q, std::vector{k, v}, std::vector{v, k}, rows, 2);
  };
  expect_close("history_attention", attend(there(query), there(key), there(value)),
               attend(query, key, value), kRounding);
  const TopLogSoftmax actual = linear_top_log_softmax(there(query), there(weight), Tensor(), 4),
                      expected = linear_top_log_softmax(query, weight, Tensor(), 4);
  EXPECT_EQ(actual.classes.values<int32_t>(), expected.classes.values<int32_t>());
  expect_close("linear_top_log_softmax", actual.log_probabilities, expected.log_probabilities,
               kRounding);
}

// Two gradients of an activation meet in bfloat16; one of 2^-9 of the other is lost there.
TEST_F(Bfloat16OnCuda, CastIsGradientsBoundary) {
  Tensor x = Tensor::of<float>({2}, {1 + 0x1p-9f, -2}).to(Device::cuda());
  x.set_needs_grad();
  const Tensor narrow = cast(x, kBFloat16);
  EXPECT_EQ(narrow.values<double>(), (std::vector<double>{1, -2}));
  const Tensor y = cast(narrow, kFloat32) * (1 + 0x1p-9);
  y.backward(Tensor::of<float>({2}, {1, 3}).to(Device::cuda()));
  EXPECT_EQ(x.gradient().dtype(), kFloat32);
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{1, 3}));
}

TEST_F(Bfloat16OnCuda, RefusesOtherMixtures) {
  const auto on_cuda = [](const Shape& shape, DType dtype) {
    return Tensor(Array::zeros(shape, dtype, Device::cuda()));
  };
  EXPECT_EQ(test::error_of([&] {
              linear(on_cuda({2, 3}, kBFloat16), on_cuda({4, 3}, kFloat64));
            }),
            "linear: input is bfloat16 on cuda:0, weight float64 on cuda:0; convert one");
  EXPECT_EQ(test::error_of([&] {
              linear(on_cuda({2, 3}, kFloat32), on_cuda({4, 3}, kBFloat16));
            }),
            "linear: input is float32 on cuda:0, weight bfloat16 on cuda:0; convert one");
  EXPECT_EQ(
      test::error_of([&] {
        layer_norm(on_cuda({2, 3}, kBFloat16), on_cuda({3}, kFloat32), on_cuda({3}, kBFloat16));
      }),
      "layer_norm: weight and bias must have one type, got float32 and bfloat16; cast one");
}

// On the CPU bfloat16 is stored, and nothing more.
TEST(Bfloat16, IsRefusedOnTheCpu) {
  const Tensor x(Array::zeros({2, 3}, kBFloat16)), weight(Array::zeros({4, 3}, kFloat32));
  EXPECT_EQ(test::error_of([&] { linear(x, weight); }),
            "linear: input is bfloat16 on cpu, weight float32 on cpu; convert one");
  EXPECT_EQ(test::error_of([&] { layer_norm(x); }),
            "layer_norm: needs float32 or float64, got bfloat16; cast it first");
  EXPECT_EQ(test::error_of([&] { gelu(x); }),
            "gelu: needs float32 or float64, got bfloat16; cast it first");
}

}  // namespace
}  // namespace gs
