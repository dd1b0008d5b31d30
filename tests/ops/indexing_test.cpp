#include "framework/ops/indexing.h"

#include "framework/core/parallel.h"
#include "tests/support/movement.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::counted;
using test::error_of;
using test::expect_movement;

test::Operation selecting(int64_t dimension, const std::vector<int32_t>& indices) {
  return [=](const std::vector<Tensor>& in) {
    const Shape shape{static_cast<int64_t>(indices.size())};
    const Tensor taken = Tensor::of<int32_t>(shape, indices).to(in[0].device());
    return index_select(in[0], dimension, taken);
  };
}
test::Operation gathering(int64_t dimension, const Shape& shape,
                          const std::vector<int32_t>& indices) {
  return [=](const std::vector<Tensor>& in) {
    return gather(in[0], dimension, Tensor::of<int32_t>(shape, indices).to(in[0].device()));
  };
}

TEST(IndexSelect, TakesAndRepeatsSlices) {
  expect_movement(selecting(0, {2, 0, 2}), {{3, 2}}, {3, 2}, {4, 5, 0, 1, 4, 5});
  expect_movement(selecting(-1, {1}), {{2, 3}}, {2, 1}, {1, 4});
  expect_movement(selecting(1, {1, 1}), {{2, 2, 2}}, {2, 2, 2}, {2, 3, 2, 3, 6, 7, 6, 7});
  expect_movement(selecting(0, {}), {{3}}, {0}, {});
  expect_movement(selecting(0, {}), {{0, 2}}, {0, 2}, {});
  expect_movement(selecting(0, {1, 0}), {{2, 0}}, {2, 0}, {});
}

// tenstorrent/tt-metal#6232, tinygrad/tinygrad#16052, pytorch/pytorch#187682: the last gradient of
// a repeated index won, or their sum varied from run to run.
TEST(IndexSelect, RepeatedIndicesAddUpTheirGradients) {
  const Tensor x = counted({4, 2}).set_needs_grad();
  const Tensor indices = Tensor::of<int32_t>({4}, {0, 0, 0, 2});
  index_select(x, 0, indices).backward(Tensor(Array::full({4, 2}, 1, kFloat64)));
  EXPECT_EQ(x.gradient().values<double>(), (std::vector<double>{3, 3, 0, 0, 1, 1, 0, 0}));
}

TEST(IndexSelect, GradientsDoNotDependOnThreads) {
  const int before = threads();
  const Tensor x = test::random_tensor<float>({3, 50, 40}, 1).set_needs_grad();
  const Tensor dy = test::random_tensor<float>({3, 1000, 40}, 2);
  std::vector<int32_t> indices, wide;
  for (int64_t i = 0; i < 1000; ++i) indices.push_back(static_cast<int32_t>(i * i % 50));
  for (int64_t i = 0; i < dy.elements(); ++i) wide.push_back(static_cast<int32_t>(i * i % 50));
  const auto gradients = [&](int count) {
    set_threads(count);
    Tensor leaf = x.detach();
    leaf.set_needs_grad();
    index_select(leaf, 1, Tensor::of<int32_t>({1000}, indices)).backward(dy);
    std::vector<float> all = leaf.gradient().values<float>();
    leaf.clear_gradient();
    gather(leaf, 1, Tensor::of<int32_t>(dy.shape(), wide)).backward(dy);
    const std::vector<float> more = leaf.gradient().values<float>();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<float> one = gradients(1);
  for (const int count : {2, 3, 7, 2, 2}) EXPECT_EQ(gradients(count), one);
  set_threads(before);
}

TEST(Gather, TakesOneElementForEachIndex) {
  expect_movement(gathering(0, {2, 2}, {2, 0, 1, 1}), {{3, 2}}, {2, 2}, {4, 1, 2, 3});
  expect_movement(gathering(-1, {2, 1}, {2, 0}), {{2, 3}}, {2, 1}, {2, 3});
  expect_movement(gathering(1, {2, 3, 1}, {0, 1, 0, 1, 1, 1}), {{2, 2, 1}}, {2, 3, 1},
                  {0, 1, 0, 3, 3, 3});
  expect_movement(gathering(0, {0, 2}, {}), {{3, 2}}, {0, 2}, {});
  expect_movement(gathering(1, {0, 2}, {}), {{0, 3}}, {0, 2}, {});
}

TEST(Indexing, RefusesBadIndices) {
  const Tensor x = counted({2, 3}), out = Tensor::of<int32_t>({4}, {0, 1, 3, -1});
  EXPECT_EQ(error_of([&] { index_select(x, 1, out); }),
            "index_select: index 3 at position 2 is outside 0..2");
  EXPECT_EQ(error_of([&] {
              index_select(x, 0, Tensor::of<int32_t>({2}, {0, -1}));
            }),
            "index_select: index -1 at position 1 is outside 0..1");
  EXPECT_EQ(error_of([&] { index_select(x, 0, counted({2})); }),
            "index_select: indices must be int32, got float64; cast them");
  EXPECT_EQ(error_of([&] {
              index_select(x, 0, counted({2, 1}, kInt32));
            }),
            "index_select: indices must have one dimension, got shape [2, 1]");
  EXPECT_EQ(error_of([&] {
              gather(x, 1, Tensor::of<int32_t>({2, 1}, {0, 3}));
            }),
            "gather: index 3 at position 1 is outside 0..2");
  EXPECT_EQ(error_of([&] {
              gather(x, 1, counted({1, 1}, kInt32));
            }),
            "gather: indices must have the sizes of x but in dimension 1, got [1, 1] for [2, 3]");
  EXPECT_EQ(error_of([&] { gather(x, 1, counted({2}, kInt32)); }),
            "gather: indices must have the sizes of x but in dimension 1, got [2] for [2, 3]");
  EXPECT_EQ(error_of([&] { gather(x, 1, x); }),
            "gather: indices must be int32, got float64; cast them");
}

TEST(Indexing, ChangedIndicesAreNoticed) {
  const Tensor x = counted({2, 3}).set_needs_grad();
  Tensor indices = Tensor::of<int32_t>({1}, {1});
  const Tensor y = index_select(x, 0, indices);
  indices.assign(Tensor::of<int32_t>({1}, {0}));
  EXPECT_NE(error_of([&] {
              y.backward(counted({1, 3}));
            }).find("was changed in place"),
            std::string::npos);
}

}  // namespace
}  // namespace gs
