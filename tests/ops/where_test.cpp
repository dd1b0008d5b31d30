#include "framework/ops/where.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/ops/softmax.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_operation;
using test::error_of;
using test::expect_near;
using test::random_tensor;
using Tensors = std::vector<Tensor>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor pattern(const Shape& shape) {
  std::vector<bool> values;
  for (int64_t i = 0; i < shape.elements(); ++i) values.push_back(i * 7 % 3 == 0);
  return Tensor::of<bool>(shape, values);
}

Tensor ones_like(const Tensor& x) { return Tensor(Array::full(x.shape(), 1, x.dtype())); }

TEST(Where, ChoosesInEveryShape) {
  struct Shapes {
    Shape condition, a, b;
  };
  for (const Shapes& s :
       {Shapes{{7}, {7}, {7}}, Shapes{{}, {}, {}}, Shapes{{3, 1}, {3, 5}, {5}},
        Shapes{{3, 5}, {}, {5}}, Shapes{{2, 1, 1}, {4, 1}, {3}}, Shapes{{0, 3}, {3}, {1, 3}}}) {
    check_operation(
        "where", [](const Tensors& in) { return where(in[0], in[1], in[2]); },
        {pattern(s.condition), random_tensor<double>(s.a, 1), random_tensor<double>(s.b, 2)});
  }
  const auto reference = [](const std::vector<std::vector<double>>& in) {
    std::vector<double> y;
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 2; ++j) y.push_back(in[0][i] != 0 ? in[1][i * 2 + j] : in[2][j]);
    return y;
  };
  check_operation(
      "where by rows", [](const Tensors& in) { return where(in[0], in[1], in[2]); },
      {pattern({3, 1}), random_tensor<double>({3, 2}, 1), random_tensor<double>({2}, 2)},
      reference);
}

TEST(Where, TakesNumbersOnEitherSide) {
  for (const Shape& shape : {Shape{3, 4}, Shape{4}, Shape{}, Shape{3, 0}}) {
    const Tensor condition = pattern(shape.rank() == 1 ? Shape{3, 4} : shape);
    const Tensor x = random_tensor<double>(shape, 1);
    check_operation("where(condition, x, 2)",
                    [](const Tensors& in) { return where(in[0], in[1], 2); }, {condition, x});
    check_operation("where(condition, 2, x)",
                    [](const Tensors& in) { return where(in[0], 2, in[1]); }, {condition, x});
  }
  const Tensor condition = Tensor::of<bool>({3}, {true, false, true});
  const Tensor x = Tensor::of<int32_t>({3}, {1, 2, 3});
  EXPECT_EQ(where(condition, x, -9).values<int32_t>(), (std::vector<int32_t>{1, -9, 3}));
  EXPECT_EQ(where(condition, -9, x).values<int32_t>(), (std::vector<int32_t>{-9, 2, -9}));
  const Tensor truth = Tensor::of<bool>({3}, {false, false, true});
  EXPECT_EQ(where(condition, truth, condition).values<bool>(),
            (std::vector<bool>{false, false, true}));
}

TEST(Where, WhatIsNotChosenHasNoInfluence) {
  const Tensor condition = Tensor::of<bool>({2}, {true, false});
  Tensor a = Tensor::of<float>({2}, {1, NAN}).set_needs_grad();
  Tensor b = Tensor::of<float>({2}, {-INFINITY, 2}).set_needs_grad();
  const Tensor y = where(condition, a, b);
  EXPECT_EQ(y.values<float>(), (std::vector<float>{1, 2}));
  y.backward(Tensor::of<float>({2}, {INFINITY, 3}));
  EXPECT_EQ(a.gradient().values<float>(), (std::vector<float>{INFINITY, 0}));
  EXPECT_EQ(b.gradient().values<float>(), (std::vector<float>{0, 3}));
}

TEST(MaskedFill, FillsAndStopsTheGradient) {
  for (const Shape& mask : {Shape{2, 3, 5}, Shape{3, 1}, Shape{5}, Shape{}, Shape{1, 3, 5}}) {
    check_operation("masked_fill",
                    [](const Tensors& in) { return masked_fill(in[0], in[1], -1.5); },
                    {random_tensor<double>({2, 3, 5}, 1), pattern(mask)});
  }
  const test::Fixture fixture = test::Fixture::load("operations", "masked_fill");
  const auto tensor_of = [&](const std::string& path) {
    const test::FixtureArray& array = fixture.array(path);
    return Tensor(Array::of<double>(array.shape, array.values).to(array.dtype));
  };
  const Tensor x = tensor_of("inputs/x").set_needs_grad();
  const Tensor y = masked_fill(x, tensor_of("inputs/mask"), fixture.number("options/value"));
  expect_near(y, fixture.array("outputs/output").values, 1e-12);
  y.backward(tensor_of("upstream"));
  expect_near(x.gradient(), fixture.array("gradients/x").values, 1e-12);
}

TEST(Where, AgreesWithPyTorch) {
  const test::Fixture fixture = test::Fixture::load("operations", "where");
  const auto tensor_of = [&](const std::string& path) {
    const test::FixtureArray& array = fixture.array(path);
    return Tensor(Array::of<double>(array.shape, array.values).to(array.dtype));
  };
  const Tensor x = tensor_of("inputs/x").set_needs_grad();
  const Tensor y = tensor_of("inputs/y").set_needs_grad();
  const Tensor chosen = where(tensor_of("inputs/condition"), x, y);
  expect_near(chosen, fixture.array("outputs/output").values, 1e-12);
  chosen.backward(tensor_of("upstream"));
  expect_near(x.gradient(), fixture.array("gradients/x").values, 1e-12);
  expect_near(y.gradient(), fixture.array("gradients/y").values, 1e-12);
}

// pytorch/pytorch#31829, #18287, #4132: 0 * infinity must not reach the gradient.
TEST(MaskedFill, InfinityUnderASoftmaxLeavesAGradientOfZero) {
  Tensor x = Tensor::of<double>({3}, {1, 2, 3}).set_needs_grad();
  const Tensor mask = Tensor::of<bool>({3}, {false, false, true});
  const Tensor p = softmax(masked_fill(x, mask, -kInfinity));
  expect_near(p, {0.2689414213699951, 0.7310585786300049, 0}, 1e-15);
  p.backward(Tensor::of<double>({3}, {1, 0, 5}));
  expect_near(x.gradient(), {0.1966119332414819, -0.1966119332414819, 0}, 1e-14);
  EXPECT_EQ(x.gradient().values<double>()[2], 0);
}

TEST(MaskedFill, UpstreamInfinityAtAFilledPlaceIsDropped) {
  Tensor x = Tensor::of<float>({2}, {1, 2}).set_needs_grad();
  const Tensor y = masked_fill(x, Tensor::of<bool>({2}, {true, false}), 0);
  y.backward(Tensor::of<float>({2}, {NAN, 4}));
  EXPECT_EQ(x.gradient().values<float>(), (std::vector<float>{0, 4}));
}

TEST(Where, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32)), mask = pattern({2, 3});
  EXPECT_EQ(error_of([&] { where(ones_like(x), x, x); }),
            "where: the condition must be bool, got float32; compare it with 0 first");
  EXPECT_EQ(error_of([&] { masked_fill(x, ones_like(x), 1); }),
            "masked_fill: the condition must be bool, got float32; compare it with 0 first");
  EXPECT_EQ(error_of([&] {
              masked_fill(x, pattern({4, 2, 3}), 1);
            }),
            "masked_fill: the mask must broadcast to x, got [4, 2, 3] and [2, 3]; use where");
  EXPECT_EQ(error_of([&] { masked_fill(x, pattern({2}), 1); }),
            "masked_fill: shapes do not broadcast, got [2, 3] and [2]");
  EXPECT_EQ(error_of([&] {
              where(mask, x, Tensor(Array::zeros({2, 3}, kInt32)));
            }),
            "where: the operands must have one type and device, got float32 on cpu and int32 on "
            "cpu; convert one");
  EXPECT_EQ(error_of([&] { where(mask, Tensor(Array::zeros({3}, kInt32)), 0.5); }),
            "where: an int32 tensor takes whole numbers of 32 bits, got 0.5; cast it first");
  EXPECT_EQ(error_of([&] { where(Tensor(), x, 1); }),
            "where: got an undefined tensor; give it values first");
}

}  // namespace
}  // namespace gs
