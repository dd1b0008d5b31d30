// Elementwise operations, movements and reductions on a CUDA device against the CPU, in sizes
// around those of warps and blocks. What they compute at all is tested where they are tested.
#include <gtest/gtest.h>

#include "framework/ops/arithmetic.h"
#include "framework/ops/broadcast.h"
#include "framework/ops/cast.h"
#include "framework/ops/comparison.h"
#include "framework/ops/creation.h"
#include "framework/ops/elementwise_loss.h"
#include "framework/ops/indexing.h"
#include "framework/ops/join.h"
#include "framework/ops/permute.h"
#include "framework/ops/reduce.h"
#include "framework/ops/reshape.h"
#include "framework/ops/slice.h"
#include "framework/ops/unary.h"
#include "framework/ops/where.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/operation_case.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::check_on_cuda;
using test::random_tensor;
using Tensors = std::vector<Tensor>;

using ElementsOnCuda = test::CudaTest;

constexpr int64_t kSizes[] = {0, 1, 31, 32, 33, 255, 257, 1025};

Tensor random(const Shape& shape, uint64_t seed = 1) { return random_tensor<double>(shape, seed); }

Tensor indices_of(const Shape& shape, std::vector<int32_t> values) {
  return Tensor::of<int32_t>(shape, values);
}

TEST_F(ElementsOnCuda, UnaryFunctions) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"negate", negate},   {"exp", exp},   {"log", log},   {"sqrt", sqrt},
      {"rsqrt", rsqrt},     {"abs", abs},   {"tanh", tanh}, {"square", square},
      {"sigmoid", sigmoid}, {"relu", relu}, {"gelu", gelu}, {"gelu_tanh", gelu_tanh},
      {"silu", silu}};
  for (const auto& [name, function] : functions) {
    for (const int64_t size : {0, 1, 257}) {
      check_on_cuda(name, [function = function](const Tensors& in) { return function(in[0]); },
                    {random({size})});
    }
  }
  check_on_cuda("clamp", [](const Tensors& in) { return clamp(in[0], -0.5, 1); },
                {random({3, 67})});
}

TEST_F(ElementsOnCuda, BinaryFunctionsOfBroadcastShapes) {
  const std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)> functions[] = {
      {"add", add},       {"subtract", subtract}, {"multiply", multiply},
      {"divide", divide}, {"maximum", maximum},   {"minimum", minimum}};
  const std::pair<Shape, Shape> shapes[] = {{{33, 31}, {33, 31}}, {{3, 1, 5}, {4, 1}},
                                            {{257}, {1}},         {{0, 3}, {3}},
                                            {{}, {2, 2}},         {{40, 33}, {33}}};
  for (const auto& [name, function] : functions) {
    for (const auto& [a, b] : shapes) {
      check_on_cuda(name,
                    [function = function](const Tensors& in) { return function(in[0], in[1]); },
                    {random(a, 1), random(b, 2)});
    }
  }
  check_on_cuda("pow", [](const Tensors& in) { return pow(abs(in[0]), in[1]); },
                {random({5, 7}, 1), random({7}, 2)});
}

TEST_F(ElementsOnCuda, NumbersAsOperands) {
  const auto all = [](const Tensors& in) {
    return divide(2, add(square(in[0]), 1.5)) - minimum(maximum(in[0], -1), 1) * 0.25 +
           pow(subtract(3, in[0]), 2);
  };
  check_on_cuda("numbers", all, {random({3, 43})});
}

TEST_F(ElementsOnCuda, ComparisonsAndConditions) {
  for (const int64_t size : kSizes) {
    const Tensor a = Tensor(random({size}, 1).value().to(kInt32)),
                 b = Tensor(random({size}, 2).value().to(kInt32));
    const auto compare = [](const Tensors& in) {
      const Tensor less_or_one = logical_or(less(in[0], in[1]), equal(in[0], 1));
      return logical_xor(logical_and(less_or_one, not_equal(in[1], in[0])),
                         logical_not(greater_equal(in[0], in[1])));
    };
    check_on_cuda("comparisons", compare, {a, b});
    const auto choose = [](const Tensors& in) {
      const Tensor chosen = where(less(in[0], in[1]), in[0], in[1]);
      return where(greater(in[0], 0), chosen, -1) + masked_fill(in[1], less_equal(in[1], 0.5), 3);
    };
    check_on_cuda("where", choose, {random({size}, 3), random({size}, 4)});
  }
}

TEST_F(ElementsOnCuda, Movements) {
  const auto moves = [](const Tensors& in) {
    const Tensor turned = permute(in[0], {2, 0, 1});                    // (C, A, B)
    const Tensor joined = concat({turned, slice(turned, 0, 0, 2)}, 0);  // (C + 2, A, B)
    const std::vector<Tensor> parts = split(joined, {1, joined.size(0) - 1});
    return reshape(broadcast_to(parts[0], parts[1].shape()) * parts[1], {-1});
  };
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{33, 2, 31}, Shape{1, 1, 2}, Shape{2, 0, 3}})
    check_on_cuda("movements", moves, {random(shape)});
  check_on_cuda("slice by steps", [](const Tensors& in) { return slice(in[0], 1, 1, 60, 3); },
                {random({5, 67})});
  check_on_cuda("transpose", [](const Tensors& in) { return transpose(in[0]); },
                {random({65, 130})});
  check_on_cuda("stack",
                [](const Tensors& in) {
                  return stack({in[0], in[1], in[0]}, 1);
                },
                {random({5, 3}, 1), random({5, 3}, 2)});
}

TEST_F(ElementsOnCuda, IndexingAndTypes) {
  const Tensor rows = indices_of({5}, {3, 0, 3, 3, 1});
  check_on_cuda("index_select", [](const Tensors& in) { return index_select(in[0], 0, in[1]); },
                {random({4, 37}), rows});
  check_on_cuda("index_select inside",
                [](const Tensors& in) { return index_select(in[0], 1, in[1]); },
                {random({3, 4, 5}), rows});
  check_on_cuda("gather", [](const Tensors& in) { return gather(in[0], 1, in[1]); },
                {random({2, 4}), indices_of({2, 3}, {3, 3, 0, 1, 2, 1})});
  check_on_cuda("one_hot", [](const Tensors& in) { return one_hot(in[0], 5); }, {rows});
  check_on_cuda("cast", [](const Tensors& in) { return cast(cast(in[0], kInt32), kBool); },
                {random({3, 43})});
  EXPECT_EQ(test::error_of([&] {
              index_select(random({3, 2}).to(Device::cuda()), 0, rows.to(Device::cuda()));
            }),
            "index_select: index 3 at position 0 is outside 0..2");
}

TEST_F(ElementsOnCuda, Reductions) {
  const std::pair<const char*, Tensor (*)(const Tensor&, const ReduceOptions&)> functions[] = {
      {"sum", sum}, {"mean", mean}, {"logsumexp", logsumexp}, {"max", max}, {"min", min}};
  for (const auto& [name, function] : functions) {
    const auto reduce = [&, name = name, function = function](
                            const Shape& shape, const std::vector<int64_t>& dimensions) {
      check_on_cuda(name,
                    [function, dimensions](const Tensors& in) {
                      return function(in[0], {.dimensions = dimensions});
                    },
                    {random(shape)});
    };
    for (const int64_t size : {1, 33, 257, 1025}) {
      reduce({3, size}, {1});
      reduce({size, 3}, {0});
    }
    reduce({3, 33, 5}, {1});
    reduce({3, 4, 5, 2}, {0, 2});
    reduce({1030}, {});
  }
  for (const int64_t size : {1, 33, 1025}) {
    check_on_cuda("variance",
                  [](const Tensors& in) { return variance(in[0], {.dimensions = {-1}}); },
                  {random({3, size})});
    check_on_cuda("argmax", [](const Tensors& in) { return argmax(in[0], {.dimensions = {-1}}); },
                  {random({3, size})}, {.has_gradient = false});
  }
}

TEST_F(ElementsOnCuda, Losses) {
  const Tensor target = greater(random({5, 67}, 2), 0);
  check_on_cuda("mse_loss", [](const Tensors& in) { return mse_loss(in[0], in[1]).mean(); },
                {random({5, 67}, 1), random({5, 67}, 2)});
  check_on_cuda("binary_cross_entropy_with_logits",
                [](const Tensors& in) {
                  return binary_cross_entropy_with_logits(in[0], cast(in[1], in[0].dtype())).sum;
                },
                {random({5, 67}, 1), target});
}

// The random numbers of a stream do not depend on the device.
TEST_F(ElementsOnCuda, Creation) {
  for (const int64_t size : {0, 1, 5, 257, 3001}) {
    for (const DType dtype : {kFloat32, kFloat64}) {
      const auto drawn = [&](Device device) {
        Generator generator(5);
        const CreationOptions options{.dtype = dtype, .device = device};
        return Tensors{rand({size}, options, generator), randn({size}, options, generator),
                       randint(-3, 1000, {size}, device, generator)};
      };
      const Tensors expected = drawn(Device::cpu()), actual = drawn(Device::cuda());
      EXPECT_EQ(actual[0].values<double>(), expected[0].values<double>());
      test::expect_near(actual[1], expected[1].values<double>(), dtype == kFloat32 ? 1e-6 : 1e-14);
      EXPECT_EQ(actual[2].values<int32_t>(), expected[2].values<int32_t>());
    }
  }
  const CreationOptions there{.dtype = kInt32, .device = Device::cuda()};
  EXPECT_EQ(arange(3, 11, 4, there).device(), Device::cuda());
  EXPECT_EQ(arange(3, 11, 4, there).values<int32_t>(), (std::vector<int32_t>{3, 7}));
  EXPECT_EQ(ones_like(full({33}, 7, there)).values<int32_t>(), std::vector<int32_t>(33, 1));
}

TEST_F(ElementsOnCuda, OperandsOnTwoDevicesAreRefused) {
  const Tensor here = random({2, 2}), there = here.to(Device::cuda());
  EXPECT_EQ(test::error_of([&] { add(here, there); }),
            "add: the operands must have one type and device, got float64 on cpu and float64 on "
            "cuda:0; convert one");
  EXPECT_EQ(test::error_of([&] { index_select(there, 0, indices_of({1}, {0})); }),
            "index_select: indices must be on cuda:0, got cpu; move them");
}

}  // namespace
}  // namespace gs
