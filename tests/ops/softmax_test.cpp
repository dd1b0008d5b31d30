#include "framework/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/tensor/gradcheck.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::expect_near;
using test::random_tensor;

constexpr float kInf = INFINITY;

// The definition over one dimension, in double precision.
struct Reference {
  std::vector<double> softmax, log_softmax, softmax_gradient, log_softmax_gradient;
};
Reference reference_of(const std::vector<double>& x, const std::vector<double>& dy, Rows rows) {
  Reference r{x, x, x, x};
  for (int64_t row = 0; row < rows.count(); ++row) {
    const auto at = [&](int64_t i) {
      return static_cast<size_t>((row / rows.inner * rows.length + i) * rows.inner +
                                 row % rows.inner);
    };
    double max = -INFINITY, sum = 0, dot = 0, dy_sum = 0;
    for (int64_t i = 0; i < rows.length; ++i) max = std::max(max, x[at(i)]);
    for (int64_t i = 0; i < rows.length; ++i) sum += std::exp(x[at(i)] - max);
    for (int64_t i = 0; i < rows.length; ++i) {
      r.softmax[at(i)] = std::exp(x[at(i)] - max) / sum;
      r.log_softmax[at(i)] = x[at(i)] - max - std::log(sum);
      dot += dy[at(i)] * r.softmax[at(i)];
      dy_sum += dy[at(i)];
    }
    for (int64_t i = 0; i < rows.length; ++i) {
      r.softmax_gradient[at(i)] = r.softmax[at(i)] * (dy[at(i)] - dot);
      r.log_softmax_gradient[at(i)] = dy[at(i)] - r.softmax[at(i)] * dy_sum;
    }
  }
  return r;
}

template <typename T>
void expect_reference(const Shape& shape, int dimension, double tolerance) {
  Tensor x = random_tensor<T>(shape, 1);
  const Tensor dy = random_tensor<T>(shape, 2);
  const Reference expected =
      reference_of(x.values<double>(), dy.values<double>(), Rows::of_dimension(shape, dimension));
  x.set_needs_grad();
  const Tensor y = softmax(x, dimension), log_y = log_softmax(x, dimension);
  expect_near(y, expected.softmax, tolerance);
  expect_near(log_y, expected.log_softmax, tolerance);
  y.backward(dy);
  expect_near(x.gradient(), expected.softmax_gradient, tolerance);
  x.clear_gradient();
  log_y.backward(dy);
  expect_near(x.gradient(), expected.log_softmax_gradient, 4 * tolerance);
}

TEST(Softmax, AgreesWithTheDefinitionInEveryDimension) {
  test::for_each_instruction_set([] {
    for (int64_t length = 1; length <= 37; ++length) {
      expect_reference<float>({3, length}, 1, 2e-6);
      expect_reference<float>({length, 3}, 0, 2e-6);
      expect_reference<double>({2, 5, length}, 1, 1e-14);
    }
    expect_reference<float>({2, 33, 100}, 1, 2e-6);
    expect_reference<float>({9, 1031}, 1, 2e-6);
    expect_reference<double>({7, 130}, 0, 1e-14);
    expect_reference<double>({7, 130}, 1, 1e-14);
  });
}

// pytorch/pytorch#25110, #55056, allenai/allennlp#890: 0 / 0 in rows that are masked altogether.
TEST(Softmax, RowsOfMinusInfinityAreZero) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    for (const bool transposed : {false, true}) {               // the same rows in both dimensions
      const std::vector<float> values{0, -kInf, -kInf, -kInf};  // symmetric
      Tensor x(Array::of<float>({2, 2}, values).to(dtype));
      x.set_needs_grad();
      const Tensor y = softmax(x, transposed ? 0 : 1), log_y = log_softmax(x, transposed ? 0 : 1);
      EXPECT_EQ(y.values<double>(), (std::vector<double>{1, 0, 0, 0}));
      EXPECT_EQ(log_y.values<double>(), (std::vector<double>{0, -INFINITY, -INFINITY, -INFINITY}));
      y.backward(Tensor(Array::of<float>({2, 2}, {1, 2, 3, 4}).to(dtype)));
      EXPECT_EQ(x.gradient().values<double>(), std::vector<double>(4));
      x.clear_gradient();
      log_y.backward(Tensor(Array::of<float>({2, 2}, {1, 0, 0, 4}).to(dtype)));
      EXPECT_EQ(x.gradient().values<double>(), std::vector<double>(4));
    }
  }
  EXPECT_EQ(softmax(Tensor(Array::full({40}, -INFINITY, kFloat32))).values<float>(),
            std::vector<float>(40));
}

TEST(Softmax, NotANumberIsNeverHidden) {
  test::for_each_instruction_set([] {
    for (int64_t place = 0; place < 20; ++place) {
      for (const float rest : {0.5f, -kInf}) {
        std::vector<float> values(20, rest);
        values[static_cast<size_t>(place)] = NAN;
        const std::vector<double> expected(20, NAN);
        for (const int64_t dimension : {0, 1}) {
          const Tensor x = Tensor::of<float>(dimension == 0 ? Shape{20, 1} : Shape{1, 20}, values);
          expect_near(softmax(x, dimension), expected, 0);
          expect_near(log_softmax(x, dimension), expected, 0);
        }
        Tensor x(Array::zeros({20}, kFloat32));
        x.set_needs_grad();
        softmax(x).backward(Tensor::of<float>({20}, values));
        expect_near(x.gradient(), expected, 0);
      }
    }
  });
  expect_near(softmax(Tensor::of<float>({2}, {kInf, 1})), {NAN, NAN}, 0);
}

// ml-explore/mlx#4169, pytorch/pytorch#11752: x - logsumexp(x) loses the digits.
TEST(Softmax, LogarithmIsExactAtEveryScale) {
  for (const float value : {1.0f, 1e4f, 1e8f, 1e20f, -1e20f}) {
    const Tensor x = Tensor::of<float>({2}, {value, value});
    for (const double y : log_softmax(x).values<double>()) EXPECT_NEAR(y, -0.69314718, 1e-7);
  }
}

// cornell-brg/hb-pytorch#61, uTensor/uTensor#175: exp overflows just past 88.72.
TEST(Softmax, BigNumbersDoNotOverflow) {
  EXPECT_EQ(log_softmax(Tensor::of<float>({1}, {88.72284f})).item(), 0);
  expect_near(softmax(Tensor::of<float>({3}, {1000, 1000, 999})),
              {0.42231880, 0.42231880, 0.15536240}, 1e-7);
  EXPECT_EQ(softmax(Tensor::of<float>({5}, {-249.87f, -424.13f, -460.29f, 378.10f, -292.61f}))
                .values<float>(),
            (std::vector<float>{0, 0, 0, 1, 0}));
}

// tracel-ai/burn#4815, pytorch/pytorch#75923: the transposed array and the other dimension.
TEST(Softmax, DimensionIsTheOneAskedFor) {
  const Tensor x = Tensor::of<float>({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const double a = 0.00032932044, b = 0.01798028674, c = 0.98169039283;
  const std::vector<double> expected{a, a, a, a, b, b, b, b, c, c, c, c};
  expect_near(softmax(x, 0), expected, 1e-7);
  expect_near(softmax(x, -2), expected, 1e-7);
  const Tensor turned = Tensor::of<float>({4, 3}, {1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12});
  expect_near(softmax(turned, 1), {a, b, c, a, b, c, a, b, c, a, b, c}, 1e-7);
}

// pytorch/pytorch#31829, #18287: 0 * infinity behind a masked place.
TEST(Softmax, MaskedPlacesHaveNoGradient) {
  Tensor x = Tensor::of<float>({3}, {1, 2, -kInf});
  x.set_needs_grad();
  const Tensor y = softmax(x);
  expect_near(y, {0.2689414214, 0.7310585786, 0}, 1e-6);
  y.backward(Tensor::of<float>({3}, {1, 0, 5}));
  expect_near(x.gradient(), {0.1966119332, -0.1966119332, 0}, 1e-6);
  EXPECT_EQ(x.gradient().values<float>()[2], 0);
}

TEST(Softmax, PassesGradcheckInOddShapes) {
  for (const Shape& shape : {Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{3, 1}, Shape{1, 1, 9},
                             Shape{0, 3}, Shape{3, 0}}) {
    const Tensor x = random_tensor<double>(shape, 1);
    for (int64_t dimension = -shape.rank(); dimension < shape.rank(); ++dimension) {
      const auto plain = [&](const std::vector<Tensor>& in) { return softmax(in[0], dimension); };
      const auto log = [&](const std::vector<Tensor>& in) { return log_softmax(in[0], dimension); };
      for (const GradcheckResult& result : {gradcheck(plain, {x}), gradcheck(log, {x})})
        EXPECT_TRUE(result.passed) << shape.text() << " " << dimension << ": " << result.message;
    }
  }
}

TEST(Softmax, RefusesWhatHasNoSuchDimension) {
  const Tensor x(Array::zeros({2, 3}, kFloat32));
  EXPECT_NE(error_of([&] { softmax(x, 2); }).find("softmax: "), std::string::npos);
  EXPECT_EQ(error_of([&] { softmax(Tensor(Array::zeros({}, kFloat32))); }),
            "softmax: needs at least one dimension, got a scalar");
  EXPECT_EQ(error_of([&] { log_softmax(Tensor(Array::zeros({2}, kInt32))); }),
            "log_softmax: needs float32 or float64, got int32; cast it first");
}

TEST(Softmax, ChangedOutputsAreNoticed) {
  Tensor x = random_tensor<float>({2, 3}, 1);
  x.set_needs_grad();
  Tensor y = softmax(x);
  const Tensor dy = y.detach();
  y.add_in_place(dy);
  EXPECT_NE(error_of([&] { y.backward(dy); }).find("changed in place"), std::string::npos);
}

}  // namespace
}  // namespace gs
