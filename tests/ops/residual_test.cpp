#include "framework/ops/residual.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/dropout.h"
#include "framework/ops/layer_norm.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

constexpr double kEpsilon = 1e-5;

template <typename T>
Tensor numbers(const Shape& shape, int seed) {
  std::vector<T> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(std::sin(static_cast<double>(i) * 1.7 + seed));
  return Tensor::of<T>(shape, values);
}

// Dropout that is the same at every call.
Tensor fused(const std::vector<Tensor>& in, double probability, bool norm) {
  Generator generator(5);
  if (!norm) return residual(in[0], in[1], probability, true, generator);
  return residual_layer_norm(in[0], in[1], in[2], in[3], kEpsilon, probability, true, generator);
}

Tensor composed(const std::vector<Tensor>& in, double probability, bool norm) {
  Generator generator(5);
  const Tensor sum = in[0] + dropout(in[1], probability, true, generator);
  return norm ? layer_norm(sum, in[2], in[3], kEpsilon) : sum;
}

// Values and gradients are those of the parts to the last bit: the same formulas in one pass.
template <typename T>
void expect_equal_to_parts(const Shape& shape, double probability, bool norm) {
  const Shape width{shape[shape.rank() - 1]};
  std::vector<Tensor> inputs{numbers<T>(shape, 1), numbers<T>(shape, 2)};
  if (norm) inputs.insert(inputs.end(), {numbers<T>(width, 3), numbers<T>(width, 4)});
  for (Tensor& input : inputs) input.set_needs_grad();
  const Tensor upstream = numbers<T>(shape, 5);
  std::vector<std::vector<T>> results[2];
  for (const bool whole : {true, false}) {
    const Tensor y = whole ? fused(inputs, probability, norm) : composed(inputs, probability, norm);
    results[whole].push_back(y.values<T>());
    y.backward(upstream);
    for (Tensor& input : inputs) {
      results[whole].push_back(input.gradient().values<T>());
      input.clear_gradient();
    }
  }
  EXPECT_EQ(results[1], results[0]) << shape.text() << " dropout " << probability;
}

TEST(Residual, EqualsItsParts) {
  test::for_each_instruction_set([] {
    for (const Shape& shape : {Shape({1, 1}), Shape({3, 5}), Shape({2, 7, 16}), Shape({130, 33}),
                               Shape({1100, 64}), Shape({0, 4}), Shape({9, 1})}) {
      for (const double probability : {0.0, 0.3, 1.0}) {
        for (const bool norm : {false, true}) {
          expect_equal_to_parts<float>(shape, probability, norm);
          expect_equal_to_parts<double>(shape, probability, norm);
        }
      }
    }
  });
}

TEST(Residual, DoesWhatEveryOperationMust) {
  const std::vector<Tensor> inputs{numbers<double>({6, 5}, 1), numbers<double>({6, 5}, 2),
                                   numbers<double>({5}, 3), numbers<double>({5}, 4)};
  for (const double probability : {0.0, 0.4}) {
    test::check_operation("residual", [&](const auto& in) { return fused(in, probability, false); },
                          {inputs[0], inputs[1]});
    test::check_operation(
        "residual_layer_norm", [&](const auto& in) { return fused(in, probability, true); },
        inputs);
    test::check_operation("residual_layer_norm without parameters",
                          [&](const auto& in) {
                            return fused({in[0], in[1], Tensor(), Tensor()}, probability, true);
                          },
                          {inputs[0], inputs[1]});
  }
}

TEST(Residual, DropsInTrainingOnly) {
  const Tensor x = numbers<float>({4, 8}, 1), branch = numbers<float>({4, 8}, 2);
  Generator generator(1);
  EXPECT_EQ(residual(x, branch, 0.5, false, generator).values<float>(),
            (x + branch).values<float>());
  EXPECT_EQ(generator.state().next_stream, 0u);
  EXPECT_EQ(residual(x, branch, 1, true, generator).values<float>(), x.values<float>());
}

TEST(Residual, RefusesWrongUse) {
  const Tensor x = numbers<float>({2, 5}, 1);
  EXPECT_EQ(test::error_of([&] { residual(x, numbers<float>({5}, 2)); }),
            "residual: input and branch must be alike, got [2, 5] float32 on cpu and [5] float32 "
            "on cpu");
  EXPECT_EQ(test::error_of([&] { residual(x, x, -0.5); }),
            "residual: dropout must be in [0, 1], got -0.5");
  EXPECT_EQ(test::error_of([&] { residual_layer_norm(x, x, numbers<float>({4}, 1), Tensor()); }),
            "residual_layer_norm: weight must be [5] float32 on cpu, got [4] float32 on cpu");
}

}  // namespace
}  // namespace gs
