// Infinities, NaN, ties, huge and tiny numbers on a CUDA device against the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/attention.h"
#include "framework/ops/cast.h"
#include "framework/ops/comparison.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/elementwise_loss.h"
#include "framework/ops/embedding.h"
#include "framework/ops/layer_norm.h"
#include "framework/ops/reduce.h"
#include "framework/ops/rms_norm.h"
#include "framework/ops/softmax.h"
#include "framework/ops/unary.h"
#include "framework/ops/where.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"

namespace gs {
namespace {

using test::check_on_cuda;
using test::random_tensor;
using Tensors = std::vector<Tensor>;

using SpecialValuesOnCuda = test::CudaTest;

constexpr double kInf = INFINITY, kNaN = NAN;

Tensor row(std::vector<double> values) {
  return Tensor::of<double>({static_cast<int64_t>(values.size())}, values);
}

Tensor rows(int64_t count, std::vector<double> values) {
  return Tensor::of<double>({count, static_cast<int64_t>(values.size()) / count}, values);
}

Tensor special() {
  return row({0,    -0.0,  1,  -1,  0.5, -0.5, kInf, -kInf, kNaN, 1e-30, -1e-30,
              1e30, -1e30, 88, -88, 104, -104, 20,   -20,   5.5,  -5.5});
}

// The same against each element of the other.
Tensors all_pairs() {
  std::vector<double> a, b;
  for (const double x : special().values<double>()) {
    for (const double y : special().values<double>()) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  return {row(a), row(b)};
}

TEST_F(SpecialValuesOnCuda, UnaryFunctions) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"negate", negate}, {"exp", exp},         {"log", log},   {"sqrt", sqrt},
      {"rsqrt", rsqrt},   {"abs", abs},         {"tanh", tanh}, {"square", square},
      {"relu", relu},     {"sigmoid", sigmoid}, {"gelu", gelu}, {"gelu_tanh", gelu_tanh},
      {"silu", silu}};
  for (const auto& [name, function] : functions) {
    check_on_cuda(name, [function = function](const Tensors& in) { return function(in[0]); },
                  {special()});
  }
  check_on_cuda("clamp", [](const Tensors& in) { return clamp(in[0], -1, 1e29); }, {special()});
}

TEST_F(SpecialValuesOnCuda, BinaryFunctions) {
  const std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)> functions[] = {
      {"add", add},       {"subtract", subtract}, {"multiply", multiply},
      {"divide", divide}, {"maximum", maximum},   {"minimum", minimum}};
  for (const auto& [name, function] : functions) {
    check_on_cuda(
        name, [function = function](const Tensors& in) { return function(in[0], in[1]); },
        all_pairs());
  }
  const std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)> comparisons[] = {
      {"equal", equal},           {"not_equal", not_equal}, {"less", less},
      {"less_equal", less_equal}, {"greater", greater},     {"greater_equal", greater_equal}};
  for (const auto& [name, function] : comparisons) {
    check_on_cuda(name, [function = function](const Tensors& in) { return function(in[0], in[1]); },
                  all_pairs(), {.has_gradient = false});
  }
}

// What was not chosen does not show, and gets the gradient 0.
TEST_F(SpecialValuesOnCuda, Conditions) {
  check_on_cuda(
      "where", [](const Tensors& in) { return where(greater(in[0], in[1]), in[0], in[1]); },
      all_pairs());
  check_on_cuda(
      "masked_fill",
      [](const Tensors& in) { return masked_fill(in[0], not_equal(in[0], in[0]), -kInf); },
      {special()});
  check_on_cuda(
      "casts",
      [](const Tensors& in) { return add(cast(in[0], kInt32), cast(cast(in[0], kBool), kInt32)); },
      {special()}, {.has_gradient = false});
}

TEST_F(SpecialValuesOnCuda, Rows) {
  const Tensor x = rows(6, {1,    2, 2,    2,  -kInf, -kInf, -kInf, -kInf, kNaN,  1, 2, 3,
                            kInf, 1, kInf, -3, 1e30,  -1e30, 1e30,  0,     -kInf, 5, 5, 0});
  const auto per_row = [&](const char* name,
                           Tensor (*function)(const Tensor&, const ReduceOptions&),
                           bool has_gradient) {
    check_on_cuda(name,
                  [function](const Tensors& in) { return function(in[0], {.dimensions = {1}}); },
                  {x}, {.has_gradient = has_gradient});
  };
  per_row("sum", sum, true);
  per_row("mean", mean, true);
  per_row("max", max, true);
  per_row("min", min, true);
  per_row("logsumexp", logsumexp, true);
  per_row("argmax", argmax, false);
  check_on_cuda("softmax", [](const Tensors& in) { return softmax(in[0]); }, {x});
  check_on_cuda("log_softmax", [](const Tensors& in) { return log_softmax(in[0]); }, {x});
}

TEST_F(SpecialValuesOnCuda, Norms) {
  const Tensor x = rows(5, {5, 5, 5, 5, 8e4, 80001, 80002, 80003, kNaN, 1,
                            2, 3, 0, 0, 0,   0,     1e-20, 2e-20, 0,    -1e-20});
  check_on_cuda("layer_norm", [](const Tensors& in) { return layer_norm(in[0]); }, {x},
                {.float_tolerance = 1e-4});
  check_on_cuda("rms_norm", [](const Tensors& in) { return rms_norm(in[0]); }, {x},
                {.float_tolerance = 1e-4});
}

TEST_F(SpecialValuesOnCuda, Losses) {
  const Tensor logits = rows(5, {1e4, -1e4, 0, 1, 2, kNaN, -kInf, 3, 0, 0, 0, 0, 1, -kInf, 1e4});
  for (const std::vector<int32_t>& targets :
       {std::vector<int32_t>{0, -7, 1, 2, 2}, {1, -7, -7, 0, 0}, {-7, -7, -7, -7, -7}}) {
    check_on_cuda(
        "cross_entropy",
        [](const Tensors& in) { return cross_entropy(in[0], in[1], {.ignore_index = -7}).mean(); },
        {logits, Tensor::of<int32_t>({5}, targets)});
  }
  check_on_cuda(
      "binary_cross_entropy_with_logits",
      [](const Tensors& in) { return binary_cross_entropy_with_logits(in[0], in[1]).sum; },
      {row({200, -200, 0, -0.0, 1e30, -1e30}), row({1, 0, 0.5, 1, 1, 0})});
}

// Rows that may attend to nothing, keys that are forbidden and not a number, scores of -infinity.
TEST_F(SpecialValuesOnCuda, Attention) {
  std::vector<double> keys = random_tensor<double>({1, 3, 4}, 2).values<double>(), values = keys;
  for (int i = 4; i < 8; ++i) keys[static_cast<size_t>(i)] = values[static_cast<size_t>(i)] = kNaN;
  const Tensors in{random_tensor<double>({1, 4, 4}, 1), Tensor::of<double>({1, 3, 4}, keys),
                   Tensor::of<double>({1, 3, 4}, values),
                   Tensor::of<bool>({4, 3}, {1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0})};
  check_on_cuda(
      "attention",
      [](const Tensors& in) {
        return scaled_dot_product_attention(in[0], in[1], in[2], {.heads = 2, .mask = in[3]})
            .output;
      },
      in);
  check_on_cuda(
      "attention with scores",
      [](const Tensors& in) {
        return scaled_dot_product_attention(in[0], in[1], in[1], {.scores = in[2]}).output;
      },
      {random_tensor<double>({1, 2, 4}, 1), random_tensor<double>({1, 3, 4}, 2),
       rows(2, {-kInf, 0.5, -kInf, -kInf, -kInf, -kInf})});
}

TEST_F(SpecialValuesOnCuda, Embedding) {
  check_on_cuda("embedding",
                [](const Tensors& in) { return embedding(in[0], in[1], {.padding_index = 1}); },
                {rows(3, {1, kInf, kNaN, 2, -kInf, 3}), Tensor::of<int32_t>({4}, {2, 1, 1, 0})});
}

}  // namespace
}  // namespace gs
