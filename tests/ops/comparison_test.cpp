#include "framework/ops/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using Bits = std::vector<bool>;

struct Case {
  Tensor (*tensors)(const Tensor&, const Tensor&);
  Tensor (*number)(const Tensor&, double);
  bool (*reference)(double, double);
};
const Case kCases[] = {
    {equal, equal, [](double a, double b) { return a == b; }},
    {not_equal, not_equal, [](double a, double b) { return a != b; }},
    {less, less, [](double a, double b) { return a < b; }},
    {less_equal, less_equal, [](double a, double b) { return a <= b; }},
    {greater, greater, [](double a, double b) { return a > b; }},
    {greater_equal, greater_equal, [](double a, double b) { return a >= b; }},
};

// All pairs of a few values, by broadcasting a column against a row.
template <typename T>
void expect_all_pairs(const std::vector<T>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  const Tensor column = Tensor::of<T>({n, 1}, values), row = Tensor::of<T>({n}, values);
  for (const Case& test : kCases) {
    Bits expected;
    for (const T a : values)
      for (const T b : values)
        expected.push_back(test.reference(static_cast<double>(a), static_cast<double>(b)));
    const Tensor y = test.tensors(column, row);
    EXPECT_EQ(y.dtype(), kBool);
    EXPECT_EQ(y.shape(), Shape({n, n}));
    EXPECT_EQ(y.values<bool>(), expected);
    if constexpr (!std::is_same_v<T, bool>) {
      for (size_t j = 0; j < values.size(); ++j) {
        const std::vector<bool> with_number =
            test.number(row, static_cast<double>(values[j])).template values<bool>();
        for (size_t i = 0; i < values.size(); ++i)
          EXPECT_EQ(with_number[i], expected[i * values.size() + j]) << i << " " << j;
      }
    }
  }
}

TEST(Comparison, HoldsForEveryPairOfEveryType) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_all_pairs<double>({-kInfinity, -1, -0.0, 0, 1e-300, 1, kInfinity, NAN});
  expect_all_pairs<float>({-INFINITY, -1, -0.0f, 0, 1e-40f, 1, INFINITY, NAN});
  expect_all_pairs<int32_t>({INT32_MIN, -1, 0, 1, INT32_MAX});
  expect_all_pairs<bool>({false, true});
}

TEST(Comparison, LongRowsAndEmptyOnes) {
  const Tensor x = test::random_tensor<float>({3, 5001}, 1);
  const Tensor bound = Tensor::of<float>({3, 1}, {-1, 0, 1});
  const std::vector<float> values = x.values<float>();
  const Bits y = less(x, bound).values<bool>();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(y[i], values[i] < static_cast<float>(i / 5001) - 1) << i;
  EXPECT_EQ(equal(Tensor(Array::zeros({0, 3}, kFloat32)), 0).shape(), Shape({0, 3}));
  EXPECT_EQ(less(Tensor::of<float>({}, {1}), 2).values<bool>(), Bits{true});
}

TEST(Comparison, ANumberIsRoundedToTheTypeOfTheTensor) {
  const Tensor x = Tensor::of<float>({2}, {0.1f, 0.2f});
  EXPECT_EQ(equal(x, 0.1).values<bool>(), (Bits{true, false}));
}

TEST(Comparison, ResultsAreNotRecorded) {
  Tensor x = test::random_tensor<double>({3}, 1);
  x.set_needs_grad();
  EXPECT_FALSE(less(x, 0).needs_grad());
  EXPECT_FALSE(equal(x, x).needs_grad());
}

TEST(Logical, FollowsTheTruthTables) {
  const Tensor a = Tensor::of<bool>({2, 1}, {false, true}),
               b = Tensor::of<bool>({2}, {false, true});
  EXPECT_EQ(logical_and(a, b).values<bool>(), (Bits{false, false, false, true}));
  EXPECT_EQ(logical_or(a, b).values<bool>(), (Bits{false, true, true, true}));
  EXPECT_EQ(logical_xor(a, b).values<bool>(), (Bits{false, true, true, false}));
  EXPECT_EQ(logical_not(b).values<bool>(), (Bits{true, false}));
  EXPECT_EQ(logical_and(a, b).shape(), Shape({2, 2}));
  EXPECT_EQ(logical_not(Tensor(Array::zeros({0}, kBool))).elements(), 0);
}

TEST(Comparison, RefusesWhatDoesNotFit) {
  const Tensor x(Array::zeros({2, 3}, kFloat32)), whole(Array::zeros({3}, kInt32)),
      truth(Array::zeros({3}, kBool));
  EXPECT_EQ(error_of([&] { less(x, Tensor(Array::zeros({2}, kFloat32))); }),
            "less: shapes do not broadcast, got [2, 3] and [2]");
  EXPECT_EQ(error_of([&] { equal(x, whole); }),
            "equal: the operands must have one type and device, got float32 on cpu and int32 on "
            "cpu; convert one");
  EXPECT_EQ(error_of([&] { greater(whole, 0.5); }),
            "greater: an int32 tensor takes whole numbers of 32 bits, got 0.5; cast it first");
  EXPECT_EQ(error_of([&] { equal(truth, 1); }),
            "equal: a bool tensor does not compare with a number, got 1; use logical_not or cast "
            "it first");
  EXPECT_EQ(error_of([&] { equal(Tensor(), 1); }),
            "equal: got an undefined tensor; give it values first");
  EXPECT_EQ(error_of([&] { logical_and(truth, whole); }),
            "logical_and: needs bool, got int32; compare it with 0 first");
  EXPECT_EQ(error_of([&] { logical_not(x); }),
            "logical_not: needs bool, got float32; compare it with 0 first");
}

}  // namespace
}  // namespace gs
