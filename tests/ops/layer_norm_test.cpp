#include "framework/ops/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/parallel.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_numbers;
using test::random_tensor;

// The formulas, in double precision and one row at a time.
struct Reference {
  std::vector<double> y, dx, dweight, dbias;
};
Reference reference_of(const std::vector<double>& x, const std::vector<double>& weight,
                       const std::vector<double>& bias, const std::vector<double>& dy) {
  const size_t width = weight.size();
  Reference r{{}, {}, std::vector<double>(width), std::vector<double>(width)};
  for (size_t start = 0; start < x.size(); start += width) {
    double mean = 0, variance = 0, g_mean = 0, product_mean = 0;
    const double size = static_cast<double>(width);
    for (size_t j = 0; j < width; ++j) mean += x[start + j] / size;
    for (size_t j = 0; j < width; ++j) variance += std::pow(x[start + j] - mean, 2) / size;
    const double deviation = std::sqrt(variance + 1e-5);
    for (size_t j = 0; j < width; ++j) {
      const double n = (x[start + j] - mean) / deviation, g = dy[start + j] * weight[j];
      r.y.push_back(n * weight[j] + bias[j]);
      r.dweight[j] += dy[start + j] * n;
      r.dbias[j] += dy[start + j];
      g_mean += g / size;
      product_mean += g * n / size;
    }
    for (size_t j = 0; j < width; ++j) {
      const double n = (x[start + j] - mean) / deviation, g = dy[start + j] * weight[j];
      r.dx.push_back((g - g_mean - n * product_mean) / deviation);
    }
  }
  return r;
}

template <typename T>
void expect_reference(const Shape& shape, double tolerance) {
  const Shape width{shape.size(-1)};
  Tensor x = random_tensor<T>(shape, 1), weight = random_tensor<T>(width, 2),
         bias = random_tensor<T>(width, 3);
  const Tensor dy = random_tensor<T>(shape, 4);
  const Reference expected = reference_of(x.values<double>(), weight.values<double>(),
                                          bias.values<double>(), dy.values<double>());
  x.set_needs_grad();
  weight.set_needs_grad();
  bias.set_needs_grad();
  const Tensor y = layer_norm(x, weight, bias);
  y.backward(dy);
  expect_near(y, expected.y, tolerance);
  // A row's deviation may be small, its gradient large.
  expect_near(x.gradient(), expected.dx, 10 * tolerance);
  expect_near(weight.gradient(), expected.dweight, 10 * tolerance);
  expect_near(bias.gradient(), expected.dbias, 10 * tolerance);
}

TEST(LayerNorm, AgreesWithTheFormulas) {
  test::for_each_instruction_set([] {
    for (int64_t width = 1; width <= 37; ++width) {
      expect_reference<float>({5, width}, 1e-5);
      expect_reference<double>({5, width}, 1e-13);
    }
    expect_reference<float>({3, 2, 520}, 1e-5);
    expect_reference<double>({1025, 9}, 1e-13);
  });
}

// tracel-ai/burn#1992, pyg-team/pytorch_geometric#2917: a constant row has no deviation.
TEST(LayerNorm, ConstantRowsHaveAFiniteGradient) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    for (const bool small : {false, true}) {
      Tensor x(Array::full({4}, 5, dtype));
      x.set_needs_grad();
      const Tensor y = layer_norm(x, {}, {}, small ? 1e-6 : 1e-5);
      EXPECT_EQ(y.values<double>(), std::vector<double>(4));
      y.backward(Tensor(Array::of<double>({4}, {1, 2, 3, 4}).to(dtype)));
      const double factor = small ? 1000 : 316.2277660168;
      expect_near(x.gradient(), {-1.5 * factor, -0.5 * factor, 0.5 * factor, 1.5 * factor}, 1e-6);
    }
  }
  // A mean that float32 cannot hold exactly.
  EXPECT_EQ(layer_norm(Tensor(Array::full({1, 100}, 0.1, kFloat32))).values<float>(),
            std::vector<float>(100));
}

// microsoft/onnxruntime#28463, ml-explore/mlx#2238, PaddlePaddle/Paddle#33534
TEST(LayerNorm, KeepsSmallVariancesBesideLargeMeans) {
  const std::vector<double> expected{-1.34163542, -0.44721181, 0.44721181, 1.34163542};
  for (const float start : {40000.0f, 80000.0f}) {
    const Tensor x = Tensor::of<float>({4}, {start, start + 1, start + 2, start + 3});
    expect_near(layer_norm(x), expected, 1e-6);
  }
  // The mean, 8388609.667, lies between two floats.
  expect_near(layer_norm(Tensor::of<float>({3}, {8388608, 8388609, 8388612})),
              {-0.9805789785, -0.3922315914, 1.3728105700}, 1e-6);
}

// pytorch/pytorch#63541
TEST(LayerNorm, SumOfTheOutputHasNoGradient) {
  Tensor x = Tensor::of<float>({3}, {1, 2, 4});
  x.set_needs_grad();
  layer_norm(x).backward(Tensor::of<float>({3}, {1, 1, 1}));
  expect_near(x.gradient(), {0, 0, 0}, 1e-6);
  x.clear_gradient();
  layer_norm(x).backward(Tensor::of<float>({3}, {1, 0, 0}));
  expect_near(x.gradient(), {0.2290822917, -0.3436200014, 0.1145377097}, 1e-6);
}

// flagos-ai/FlagGems#5392, BobMcDear/attorch#18: more than two dimensions, the last block of rows.
TEST(LayerNorm, GradientsOfParametersCoverEveryRow) {
  for (const int64_t rows : {1, 31, 33, 65, 1025, 3000}) {
    std::vector<float> values;
    for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), {1, 2, 4});
    Tensor weight(Array::full({3}, 1, kFloat32)), bias(Array::zeros({3}, kFloat32));
    weight.set_needs_grad();
    bias.set_needs_grad();
    layer_norm(Tensor::of<float>({rows, 3}, values), weight, bias)
        .backward(Tensor(Array::full({rows, 3}, 1, kFloat32)));
    const double n = static_cast<double>(rows);
    expect_near(weight.gradient(), {-1.0690415 * n, -0.2672604 * n, 1.3363019 * n}, 1e-6);
    expect_near(bias.gradient(), {n, n, n}, 0);
  }
}

TEST(LayerNorm, LeadingDimensionsOnlyCountRows) {
  std::vector<std::vector<float>> results[2];
  for (const int k : {0, 1}) {
    const Shape shape = k == 0 ? Shape{2, 3, 4} : Shape{6, 4};
    Tensor x = random_tensor<float>(shape, 1), weight = random_tensor<float>({4}, 2),
           bias = random_tensor<float>({4}, 3);
    for (Tensor* tensor : {&x, &weight, &bias}) tensor->set_needs_grad();
    layer_norm(x, weight, bias).backward(random_tensor<float>(shape, 4));
    EXPECT_EQ(x.gradient().shape(), shape);
    for (const Tensor& tensor : {x, weight, bias})
      results[k].push_back(tensor.gradient().values<float>());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(LayerNorm, GradientsAreTheSameForAnyNumberOfThreads) {
  const int before = threads();
  std::vector<float> first;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    Tensor weight = random_tensor<float>({64}, 2);
    weight.set_needs_grad();
    layer_norm(random_tensor<float>({3001, 64}, 1), weight)
        .backward(random_tensor<float>({3001, 64}, 3));
    if (count == 1) first = weight.gradient().values<float>();
    EXPECT_EQ(weight.gradient().values<float>(), first);
  }
  set_threads(before);
}

TEST(LayerNorm, PassesGradcheckWithAndWithoutParameters) {
  const auto full = [](const std::vector<Tensor>& in) { return layer_norm(in[0], in[1], in[2]); };
  const auto bias_only = [](const std::vector<Tensor>& in) { return layer_norm(in[0], {}, in[1]); };
  const auto plain = [](const std::vector<Tensor>& in) { return layer_norm(in[0], {}, {}, 0.1); };
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 1, 7}, Shape{9}, Shape{4, 1}, Shape{0, 3}}) {
    const Tensor x = random_tensor<double>(shape, 1);
    const Tensor weight = random_tensor<double>({shape.size(-1)}, 2),
                 bias = random_tensor<double>({shape.size(-1)}, 3);
    for (const GradcheckResult& result : {gradcheck(full, {x, weight, bias}),
                                          gradcheck(bias_only, {x, bias}), gradcheck(plain, {x})})
      EXPECT_TRUE(result.passed) << shape.text() << ": " << result.message;
  }
}

TEST(LayerNorm, EmptyShapesWork) {
  Tensor x(Array::zeros({3, 0}, kFloat32)), weight(Array::zeros({0}, kFloat32));
  x.set_needs_grad();
  weight.set_needs_grad();
  layer_norm(x, weight).backward(x.detach());
  EXPECT_EQ(x.gradient().shape(), (Shape{3, 0}));
  Tensor wide(Array::full({2}, 1, kFloat32));
  wide.set_needs_grad();
  const Tensor none(Array::zeros({0, 2}, kFloat32));
  layer_norm(none, wide).backward(none);
  EXPECT_EQ(wide.gradient().values<float>(), (std::vector<float>{0, 0}));
}

TEST(LayerNorm, NotANumberStaysInItsRow) {
  const Tensor x = Tensor::of<float>({3, 2}, {1, NAN, INFINITY, 1, 1, 2});
  expect_near(layer_norm(x), {NAN, NAN, NAN, NAN, -0.9999800006, 0.9999800006}, 1e-6);
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32)), narrow(Array::zeros({2}, kFloat32));
  EXPECT_EQ(error_of([&] { layer_norm(x, narrow); }),
            "layer_norm: weight must be [3] float32 on cpu, got [2] float32 on cpu");
  EXPECT_EQ(error_of([&] { layer_norm(x, {}, Tensor(Array::zeros({3}, kFloat64))); }),
            "layer_norm: bias must be [3] float32 on cpu, got [3] float64 on cpu");
  EXPECT_EQ(error_of([&] { layer_norm(x, {}, {}, -1); }),
            "layer_norm: epsilon must be at least 0, got -1");
  EXPECT_EQ(error_of([&] { layer_norm(x, {}, {}, NAN); }),
            "layer_norm: epsilon must be at least 0, got nan");
  EXPECT_EQ(error_of([&] { layer_norm(Tensor(Array::zeros({}, kFloat32))); }),
            "layer_norm: needs at least one dimension, got a scalar");
  EXPECT_EQ(error_of([&] { layer_norm(Tensor(Array::zeros({2}, kInt32))); }),
            "layer_norm: needs float32 or float64, got int32; cast it first");
}

TEST(LayerNorm, ChangedInputsAreNoticed) {
  Tensor x = random_tensor<float>({2, 3}, 1), weight = random_tensor<float>({3}, 2);
  weight.set_needs_grad();
  const Tensor y = layer_norm(x, weight);
  x.add_in_place(x);
  EXPECT_NE(error_of([&] { y.backward(y.detach()); }).find("changed in place"), std::string::npos);
}

}  // namespace
}  // namespace gs
