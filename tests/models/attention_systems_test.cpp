#include "models/attention_systems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "framework/ops/arithmetic.h"
#include "framework/ops/matmul.h"
#include "framework/ops/reshape.h"
#include "framework/ops/softmax.h"
#include "framework/tensor/gradcheck.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

constexpr double kTolerance = 1e-12;

// The input, weights and outputs of a published NumPy example: np.random.seed(42), then
// W_q, W_k, W_v = np.random.randn(2, 6, 3) each.
const Matrix kTokens(3, 6,
                     {0.1, 0.2, 0.3, 0.4, 0.5, 0.6,    //
                      0.6, 0.5, 0.4, 0.3, 0.2, 0.1,    //
                      0.2, 0.1, 0.4, 0.3, 0.6, 0.5});  //
const std::vector<double> kTokensOutput{
    0.1576525964, -0.1021838853, -0.6959753770, -0.0209705709, 0.2058862597, -0.7908474472,
    0.1662770704, -0.0954209427, -0.6874243781, -0.0122056486, 0.2212395561, -0.7193932846,
    0.1659078465, -0.0816976025, -0.7342273268, -0.0157355798, 0.2150433630, -0.7488218661};

NumpyFormAttention numpy_form() {
  MersenneTwister numbers(42);
  return NumpyFormAttention(6, 2, numbers);
}

Tensor batch_of_one(const Matrix& x) { return reshape(x.tensor(), {1, x.rows, x.columns}); }

// The sizes that the Keras tutorial prints.
TEST(AttentionSystems, KerasFormHasTheShapesOfTheTutorial) {
  const KerasFormAttention attention(512, 8);
  const Tensor x = random_tensor<float>({1, 60, 512}, 1);
  const auto [output, weights] = attention(x, x, x);
  EXPECT_EQ(output.shape(), Shape({1, 60, 512}));
  EXPECT_EQ(weights.shape(), Shape({1, 8, 60, 60}));
}

TEST(AttentionSystems, NumpyFormGivesTheNumbersOfTheExample) {
  const NumpyFormAttention attention = numpy_form();
  // The last numbers drawn for each role.
  EXPECT_EQ(attention.heads[1].query(5, 2), -1.2208436499710222);
  EXPECT_EQ(attention.heads[1].key(5, 2), 1.5380365664659692);
  EXPECT_EQ(attention.heads[1].value(5, 2), 0.17457781283183896);
  const auto [output, heads] = attention(kTokens);
  expect_near(output.tensor(), kTokensOutput, 1e-10);
  const double first[2][3] = {{0.1989013496, 0.4237412998, 0.3773573505},
                              {0.2595188481, 0.3997047244, 0.3407764275}};
  for (size_t head = 0; head < 2; ++head)
    for (int64_t key = 0; key < 3; ++key)
      EXPECT_NEAR(heads[head].weights(0, key), first[head][key], 1e-10);
}

TEST(AttentionSystems, NumpyFormIsNotUpsetByLargeScores) {
  const NumpyFormAttention attention = numpy_form();
  Matrix large = kTokens;
  for (double& x : large.values) x *= 1e4;
  for (const auto& head : attention(large).heads)
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_NEAR(head.weights(i, 0) + head.weights(i, 1) + head.weights(i, 2), 1, kTolerance);
  EXPECT_EQ(attention(Matrix(0, 6)).output.rows, 0);
}

// The usual faults of ports: heads and depth swapped, a weight not transposed, the scale of the
// whole width instead of a head's.
TEST(AttentionSystems, AllFormsAgreeWhenTheWeightsAreMapped) {
  const NumpyFormAttention numpy = numpy_form();
  const auto expected = numpy(kTokens);
  for (const DType dtype : {kFloat64, kFloat32}) {
    const double tolerance = dtype == kFloat64 ? 1e-12 : 1e-6;
    PytorchFormAttention pytorch(6, 2);
    KerasFormAttention keras(6, 2);
    pytorch.to(dtype);
    keras.to(dtype);
    import_weights(pytorch, numpy);
    import_weights(keras, numpy);
    nn::MultiHeadAttention fused(6, {.heads = 2});
    fused.to(dtype);
    import_weights(fused, numpy);
    const Tensor x = Tensor(batch_of_one(kTokens).value().to(dtype));
    expect_near(fused(x, x, x, {}), expected.output.values, tolerance);
    for (const Attention& attention : {pytorch(x, x, x), keras(x, x, x)}) {
      expect_near(attention.output, expected.output.values, tolerance);
      std::vector<double> weights;
      for (const auto& head : expected.heads)
        weights.insert(weights.end(), head.weights.values.begin(), head.weights.values.end());
      expect_near(attention.weights, weights, tolerance);
    }
  }
}

// rasbt/LLMs-from-scratch#61
TEST(AttentionSystems, HeadsAreColumnsNextToEachOther) {
  const Tensor x = Tensor::of<double>({1, 1, 6}, {0, 1, 2, 3, 4, 5});
  const Tensor heads = split_heads(x, 2);
  EXPECT_EQ(heads.shape(), Shape({1, 2, 1, 3}));
  EXPECT_EQ(heads.values<double>(), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  const Tensor two = split_heads(Tensor::of<double>({1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), 2);
  EXPECT_EQ(two.values<double>(), (std::vector<double>{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(merge_heads(two).values<double>(), (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(error_of([&] { split_heads(x, 4); }),
            "split_heads: the width must be a multiple of the heads, got width 6 and 4 heads");
}

// The same: a reshape in the place of the permute runs, and gives other numbers.
TEST(AttentionSystems, ReshapeInThePlaceOfPermuteIsAnotherFunction) {
  const auto weights = numpy_form().packed_weights();
  const auto project = [](const Matrix& kernel) {
    return reshape(matmul(kTokens.tensor(), kernel.tensor()), {1, 2, 3, 3});
  };
  const Tensor q = project(weights.query), k = project(weights.key), v = project(weights.value);
  const Tensor mixed = matmul(softmax(matmul(q, k, {.transpose_b = true}) / std::sqrt(3.0)), v);
  const std::vector<double> values = merge_heads(mixed).values<double>();
  EXPECT_NEAR(values[0], 0.3117763133, 1e-10);
  EXPECT_NEAR(values[1], 0.1977368011, 1e-10);
  EXPECT_NEAR(values[2], -1.1166413613, 1e-10);
}

Tensor identity(int64_t width) {
  Matrix result(width, width);
  for (int64_t i = 0; i < width; ++i) result(i, i) = 1;
  return result.tensor();
}

template <typename Form>
void set_identity(Form& attention, int64_t width) {
  attention.to(kFloat64);
  for (nn::Linear* layer :
       {&*attention.query, &*attention.key, &*attention.value, &*attention.output})
    import_dense(*layer, identity(width));
}

// Derived: another order of the arguments is silent and wrong where the lengths are the same.
TEST(AttentionSystems, AChangedQueryChangesItsOwnRowOnly) {
  PytorchFormAttention pytorch(8, 2);
  KerasFormAttention keras(8, 2);
  set_identity(pytorch, 8);
  set_identity(keras, 8);
  const Tensor memory = random_tensor<double>({1, 5, 8}, 2);
  std::vector<double> values = random_tensor<double>({1, 5, 8}, 1).values<double>();
  const Tensor before = Tensor::of<double>({1, 5, 8}, values);
  for (size_t i = 24; i < 32; ++i) values[i] += 1;
  const Tensor after = Tensor::of<double>({1, 5, 8}, values);
  const std::vector<std::function<Attention(const Tensor&)>> calls{
      [&](const Tensor& query) { return pytorch(query, memory, memory); },
      [&](const Tensor& query) { return keras(memory, memory, query); }};
  for (const auto& call : calls) {
    const std::vector<double> first = call(before).output.values<double>(),
                              second = call(after).output.values<double>();
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(first[i] != second[i], i >= 24 && i < 32) << i;
    const auto [output, weights] = call(random_tensor<double>({1, 2, 8}, 3));
    EXPECT_EQ(output.shape(), Shape({1, 2, 8}));
    EXPECT_EQ(weights.shape(), Shape({1, 2, 2, 5}));
  }
}

// TensorFlow's transformer tutorial with its own batch; ml-explore/mlx#2626. In float32 -1e9
// swallows the scores: a query that may attend to nothing would attend to everything.
TEST(AttentionSystems, AQueryThatMayAttendToNothingHasNoWeights) {
  KerasFormAttention keras(6, 2);
  PytorchFormAttention pytorch(6, 2);
  const Tensor x = random_tensor<float>({1, 5, 6}, 1);
  std::vector<float> blocked;  // the first three tokens are padding, and the future is hidden
  for (int query = 0; query < 5; ++query)
    for (int key = 0; key < 5; ++key) blocked.push_back(key < 3 || key > query ? 1 : 0);
  std::vector<float> allowed;
  for (const float value : blocked) allowed.push_back(1 - value);
  const Tensor y = keras(x, x, x, Tensor::of<float>({1, 1, 5, 5}, blocked)).weights;
  const Tensor z = pytorch(x, x, x, Tensor::of<float>({1, 1, 5, 5}, allowed)).weights;
  for (const Tensor& weights : {y, z}) {
    const std::vector<float> values = weights.values<float>();
    for (size_t i = 0; i < values.size(); ++i)
      if (blocked[i % 25] == 1) {
        EXPECT_EQ(values[i], 0) << i;
      }
    EXPECT_EQ(values[3 * 5 + 3], 1);
    EXPECT_NEAR(values[4 * 5 + 3] + values[4 * 5 + 4], 1, 1e-6);
  }
}

TEST(AttentionSystems, GradientsAreRightAndNothingIsLeft) {
  const int64_t nodes = live_nodes();
  {
    PytorchFormAttention pytorch(6, 3);
    KerasFormAttention keras(6, 3);
    pytorch.to(kFloat64);
    keras.to(kFloat64);
    const Tensor mask = Tensor::of<int32_t>({3, 1}, {1, 0, 1});  // the second query sees nothing
    const std::vector<Tensor> inputs{random_tensor<double>({2, 3, 6}, 1),
                                     random_tensor<double>({2, 4, 6}, 2),
                                     random_tensor<double>({2, 4, 6}, 3)};
    GradcheckResult result = gradcheck(
        [&](const std::vector<Tensor>& x) { return pytorch(x[0], x[1], x[2], mask).output; },
        inputs);
    EXPECT_TRUE(result.passed) << result.message;
    result = gradcheck(
        [&](const std::vector<Tensor>& x) { return keras(x[2], x[1], x[0], mask).weights; },
        inputs);
    EXPECT_TRUE(result.passed) << result.message;
    for (const Shape& shape : {Shape({0, 3, 6}), Shape({2, 0, 6}), Shape({1, 1, 6})}) {
      const Tensor x = random_tensor<double>(shape, 4);
      EXPECT_EQ(pytorch(x, x, x).output.shape(), shape);
      EXPECT_EQ(keras(x, x, x).output.shape(), shape);
    }
  }
  EXPECT_EQ(live_nodes(), nodes);
}

TEST(AttentionSystems, ImportsKernelsOfDenseLayers) {
  nn::Linear layer(2, 3), without(2, 3, {.bias = false});
  const Tensor kernel = Tensor::of<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  import_dense(layer, kernel, Tensor::of<double>({3}, {7, 8, 9}));
  EXPECT_EQ(layer.weight->values<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(layer.bias->values<float>(), (std::vector<float>{7, 8, 9}));
  import_dense(layer, kernel);
  EXPECT_EQ(layer.bias->values<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(error_of([&] {
              import_dense(layer, Tensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
            }),
            "import_dense: the kernel must be (in, out) of the layer, got [3, 2] for a weight "
            "(out, in) of [3, 2]");
  EXPECT_EQ(error_of([&] {
              import_dense(layer, kernel, Tensor::of<double>({2}, {1, 2}));
            }),
            "import_dense: the bias does not fit, got [2] for [3]");
  EXPECT_EQ(error_of([&] {
              import_dense(without, kernel, Tensor::of<double>({3}, {1, 2, 3}));
            }),
            "import_dense: the bias does not fit, got [3] for a layer without bias");
  PytorchFormAttention three_heads(6, 3);
  EXPECT_EQ(error_of([&] { import_weights(three_heads, numpy_form()); }),
            "import_weights: the numbers of heads differ, got 3 and 2");
  PytorchFormAttention wider(8, 2);
  EXPECT_NE(error_of([&] { import_weights(wider, numpy_form()); }), "");
}

}  // namespace
}  // namespace gs
