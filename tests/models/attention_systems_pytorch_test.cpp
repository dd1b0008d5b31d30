#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/ops/comparison.h"
#include "models/attention_systems.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"

// The published forms of attention, and nn::MultiHeadAttention, against PyTorch's numbers.
namespace gs {
namespace {

using test::expect_near;
using test::Fixture;
using test::FixtureArray;
using test::random_tensor;

constexpr double kTolerance = 1e-12;

Tensor tensor_of(const FixtureArray& array, DType dtype) {
  return Tensor(Array::of<double>(array.shape, array.values).to(dtype));
}

// Output, weights and all gradients of a case computed by PyTorch.
template <typename Form, typename Call>
void expect_agreement(const std::string& name, Form&& module, DType dtype, Call call) {
  SCOPED_TRACE(name);
  const double tolerance = dtype == kFloat64 ? 1e-10 : 1e-5;
  const Fixture fixture = Fixture::load("attention", name);
  ASSERT_EQ(fixture.number("options/width"), 9);
  ASSERT_EQ(fixture.number("options/heads"), 3);
  module.to(dtype);
  std::vector<std::string> paths;
  for (const auto& [path, parameter] : module.parameters()) {
    (*parameter)->assign(tensor_of(fixture.array("parameters/" + path), dtype));
    paths.push_back(path);
  }
  EXPECT_THAT(paths, testing::UnorderedElementsAreArray(fixture.names("parameters")));
  std::vector<Tensor> inputs;
  for (const char* input : {"query", "key", "value"})
    inputs.push_back(
        tensor_of(fixture.array("inputs/" + std::string(input)), dtype).set_needs_grad());
  const Tensor mask = tensor_of(fixture.array("inputs/mask"), kInt32);

  const Attention attention = call(module, inputs[0], inputs[1], inputs[2], mask);
  EXPECT_EQ(attention.output.shape(), fixture.array("outputs/output").shape);
  EXPECT_EQ(attention.weights.shape(), fixture.array("outputs/weights").shape);
  expect_near(attention.output, fixture.array("outputs/output").values, tolerance);
  expect_near(attention.weights, fixture.array("outputs/weights").values, tolerance);

  attention.output.backward(tensor_of(fixture.array("upstream"), dtype));
  for (const auto& [path, parameter] : module.parameters()) {
    SCOPED_TRACE(path);
    expect_near((*parameter)->gradient(), fixture.array("gradients/" + path).values, tolerance);
  }
  expect_near(inputs[0].gradient(), fixture.array("gradients/query").values, tolerance);
  expect_near(inputs[1].gradient(), fixture.array("gradients/key").values, tolerance);
  expect_near(inputs[2].gradient(), fixture.array("gradients/value").values, tolerance);
}

TEST(AttentionSystems, PytorchFormAgreesWithPyTorch) {
  const auto call = [](auto& module, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& mask) { return module(query, key, value, mask); };
  for (const char* name : {"pytorch_form_causal", "pytorch_form_padding"}) {
    expect_agreement(name, PytorchFormAttention(9, 3), kFloat64, call);
    expect_agreement(name, PytorchFormAttention(9, 3), kFloat32, call);
  }
}

TEST(AttentionSystems, KerasFormAgreesWithPyTorch) {
  const auto call = [](auto& module, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& mask) { return module(value, key, query, mask); };
  for (const char* name : {"keras_form_causal", "keras_form_padding"}) {
    expect_agreement(name, KerasFormAttention(9, 3), kFloat64, call);
    expect_agreement(name, KerasFormAttention(9, 3), kFloat32, call);
  }
}

// The fast one against the same cases, and one with widths of its own for keys and values.
TEST(AttentionSystems, MultiHeadAttentionAgreesWithPyTorch) {
  const auto call = [](auto& module, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& mask) {
    Tensor weights;
    const Tensor output =
        module(query, key, value, {.mask = not_equal(mask, 0), .weights = &weights});
    return Attention{output, weights};
  };
  for (const DType dtype : {kFloat64, kFloat32}) {
    for (const char* name : {"pytorch_form_causal", "pytorch_form_padding"})
      expect_agreement(name, nn::MultiHeadAttention(9, {.heads = 3, .input_bias = false}), dtype,
                       call);
    expect_agreement("widths",
                     nn::MultiHeadAttention(9, {.heads = 3, .key_width = 5, .value_width = 7}),
                     dtype, call);
  }
}

// Value and all gradients, also of a query that may attend to nothing.
TEST(AttentionSystems, MultiHeadAttentionAgreesWithThePytorchForm) {
  PytorchFormAttention plain(12, 4);
  nn::MultiHeadAttention fused(12, {.heads = 4, .input_bias = false});
  plain.to(kFloat64);
  fused.to(kFloat64);
  const auto from = plain.parameters(), to = fused.parameters();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(from[i].path, to[i].path);
    (*to[i].parameter)->assign(from[i].parameter->tensor().detach());
  }
  std::vector<double> bits = test::random_numbers(2 * 5 * 7, 5);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = bits[i] > 0 && i >= 7 ? 1 : 0;
  const Tensor mask = Tensor::of<double>({2, 1, 5, 7}, bits);
  const Tensor upstream = random_tensor<double>({2, 5, 12}, 4);
  std::vector<std::vector<std::vector<double>>> results;
  for (const bool is_fused : {false, true}) {
    Tensor query = random_tensor<double>({2, 5, 12}, 1), key = random_tensor<double>({2, 7, 12}, 2),
           value = random_tensor<double>({2, 7, 12}, 3);
    for (Tensor* input : {&query, &key, &value}) input->set_needs_grad();
    Attention result;
    if (is_fused) {
      result.output =
          fused(query, key, value, {.mask = not_equal(mask, 0), .weights = &result.weights});
    } else {
      result = plain(query, key, value, mask);
    }
    result.output.backward(upstream);
    std::vector<std::vector<double>>& values = results.emplace_back();
    for (const Tensor& x :
         {result.output, result.weights, query.gradient(), key.gradient(), value.gradient()})
      values.push_back(x.values<double>());
    for (const auto& named : is_fused ? to : from)
      values.push_back((*named.parameter)->gradient().values<double>());
  }
  for (size_t i = 0; i < results[0].size(); ++i) {
    SCOPED_TRACE(i);
    const auto count = static_cast<int64_t>(results[0][i].size());
    expect_near(Tensor::of<double>({count}, results[1][i]), results[0][i], kTolerance);
  }
}

}  // namespace
}  // namespace gs
