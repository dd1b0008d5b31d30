#include "framework/ops/permute.h"

#include "framework/core/parallel.h"
#include "framework/ops/reshape.h"
#include "tests/support/movement.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

// Element by element from the definition.
std::vector<double> reference(const Shape& shape, const std::vector<int64_t>& order, Shape& out) {
  std::vector<int64_t> sizes, strides(order.size(), 1), index(order.size(), 0);
  for (int d = shape.rank() - 2; d >= 0; --d)
    strides[static_cast<size_t>(d)] = strides[static_cast<size_t>(d) + 1] * shape[d + 1];
  for (const int64_t d : order) sizes.push_back(shape[static_cast<int>(d)]);
  out = Shape(sizes);
  std::vector<double> values;
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t place = 0, rest = i;
    for (size_t d = order.size(); d-- > 0;) {
      place += rest % sizes[d] * strides[static_cast<size_t>(order[d])];
      rest /= sizes[d];
    }
    values.push_back(static_cast<double>(place));
  }
  return values;
}

void expect_permuted(const Shape& shape, const std::vector<int64_t>& order) {
  SCOPED_TRACE(shape.text() + " in order " + Shape(order).text());
  Shape out;
  const std::vector<double> expected = reference(shape, order, out);
  expect_movement([&](const std::vector<Tensor>& in) { return permute(in[0], order); }, {shape},
                  out, expected);
}

TEST(Permute, EveryOrderOfOddShapes) {
  std::vector<int64_t> order{0, 1, 2, 3};
  do {
    expect_permuted({2, 3, 1, 5}, order);
  } while (std::next_permutation(order.begin(), order.end()));
  expect_permuted({3, 0, 2}, {2, 0, 1});
  expect_permuted({1, 1}, {1, 0});
  expect_permuted({}, {});
  expect_permuted({4}, {0});
  expect_permuted({2, 1, 2, 1, 3, 2, 1, 2}, {7, 6, 5, 4, 3, 2, 1, 0});
  expect_permuted({2, 1, 2, 1, 3, 2, 1, 2}, {4, 0, 1, 2, 3, 6, 5, 7});
}

// Longer than a tile, and more than one thread's share.
TEST(Permute, LargeArraysInParallel) {
  const int before = threads();
  for (const int count : {1, 3}) {
    set_threads(count);
    for (const std::vector<int64_t>& order :
         {std::vector<int64_t>{0, 2, 1, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}, {1, 2, 3, 0}}) {
      const Shape shape{5, 37, 18, 33};
      Shape out;
      const std::vector<double> expected = reference(shape, order, out);
      EXPECT_EQ(permute(counted(shape), order).values<double>(), expected);
      EXPECT_EQ(permute(counted(shape, kInt32), order).values<double>(), expected);
    }
    const Tensor flags = permute(Tensor(counted({300, 200}).value().to(kBool)), {1, 0});
    EXPECT_FALSE(flags.values<bool>()[0]);
    EXPECT_TRUE(flags.values<bool>()[300]);
  }
  set_threads(before);
}

// pytorch/pytorch#5943, llvm/torch-mlir#4657: negative dimensions broke the backward.
TEST(Permute, NegativeDimensions) {
  const Tensor x = test::random_tensor<double>({3, 3}, 1).set_needs_grad();
  permute(x, {-1, -2}).backward(Tensor(Array::full({3, 3}, 1, kFloat64)));
  EXPECT_EQ(x.gradient().values<double>(), std::vector<double>(9, 1));
  const Tensor y = counted({2, 3, 4, 5});
  EXPECT_EQ(permute(y, {0, -1, 1, 2}).shape(), Shape({2, 5, 3, 4}));
  EXPECT_EQ(permute(y, {0, -1, 1, 2}).values<double>(), permute(y, {0, 3, 1, 2}).values<double>());
  EXPECT_EQ(error_of([&] {
              permute(y, {0, -5, 1, 2});
            }),
            "permute: no dimension -5 in rank 4; use -4 to 3");
}

// CanReader/FastNN#3, mindspore-ai/mindspore#268
TEST(Permute, RepeatedAndMissingDimensions) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(error_of([&] {
              permute(x, {0, 0});
            }),
            "permute: dimension 0 is given twice, got [0, 0]");
  EXPECT_EQ(error_of([&] {
              permute(x, {0, -2});
            }),
            "permute: dimension 0 is given twice, got [0, -2]");
  EXPECT_EQ(error_of([&] { permute(x, {0}); }),
            "permute: rank 2 needs 2 dimensions, got [0]; name each once");
}

// pytorch/pytorch#764, #3653, rasbt/LLMs-from-scratch#61: views of permuted tensors were scrambled
// or refused.
TEST(Permute, ReshapesAfterwardsReadTheNewOrder) {
  for (const Shape& shape : {Shape{100, 10, 1}, Shape{100, 10, 2}, Shape{20, 5, 2}}) {
    Shape permuted;
    const std::vector<double> expected = reference(shape, {1, 2, 0}, permuted);
    const Tensor y = reshape(permute(counted(shape), {1, 2, 0}), {10, -1});
    EXPECT_EQ(y.shape(), Shape({10, shape.elements() / 10}));
    EXPECT_EQ(y.values<double>(), expected);
  }
}

// rasbt/LLMs-from-scratch#61: heads are split with a permute, not with a reshape alone.
TEST(Permute, SplitsHeads) {
  const Tensor heads = permute(reshape(counted({1, 2, 6}), {1, 2, 2, 3}), {0, 2, 1, 3});
  EXPECT_EQ(heads.shape(), Shape({1, 2, 2, 3}));
  EXPECT_EQ(heads.values<double>(), (std::vector<double>{0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11}));
}

TEST(Transpose, ExchangesTwoDimensions) {
  const auto exchange = [](int64_t a, int64_t b) {
    return [a, b](const std::vector<Tensor>& in) { return transpose(in[0], a, b); };
  };
  expect_movement(exchange(0, -1), {{2, 3}}, {3, 2}, {0, 3, 1, 4, 2, 5});
  expect_movement(exchange(-2, -1), {{1, 2, 2}}, {1, 2, 2}, {0, 2, 1, 3});
  expect_movement(exchange(1, 1), {{2, 2}}, {2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(transpose(counted({4, 2, 3})).shape(), Shape({4, 3, 2}));
  EXPECT_EQ(error_of([] { transpose(counted({4})); }),
            "transpose: no dimension -2 in rank 1; use -1 to 0");
}

// A copy even where nothing moves, so that changes in place never reach the source.
TEST(Permute, SharesNoMemory) {
  const Tensor x = counted({2, 3});
  EXPECT_FALSE(permute(x, {0, 1}).shares_storage(x));
  EXPECT_FALSE(transpose(x).shares_storage(x));
}

}  // namespace
}  // namespace gs
