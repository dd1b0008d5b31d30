#include <gtest/gtest.h>

#include <limits>

#include "framework/backend/binary.h"
#include "framework/backend/broadcast.h"
#include "framework/backend/comparison.h"
#include "framework/backend/elementwise_loss.h"
#include "framework/backend/indices.h"
#include "framework/backend/sum_to.h"
#include "framework/backend/unary.h"
#include "framework/backend/where.h"
#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"

// Functions of elements on CUDA devices against the CPU.
namespace gs {
namespace {

using CudaElementwise = test::CudaTest;
using Inputs = std::vector<Array>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const std::vector<int64_t> kCounts = {0, 1, 7, 8, 9, 257, 1027};

// Random numbers of which the first are special.
Array special_array(int64_t count, uint64_t seed) {
  const std::vector<double> special = {0, -0.0, kInfinity, -kInfinity, kNaN, 1, -1, 90, -90, 30};
  std::vector<double> values = test::numbers_of(test::random_array({count}, seed));
  for (size_t i = 0; i < std::min(special.size(), values.size()); ++i) values[i] = special[i];
  return Array::of({count}, values);
}

TEST_F(CudaElementwise, FunctionsOfOneNumber) {
  for (int i = 0; i <= static_cast<int>(backend::Unary::kClamp); ++i) {
    const auto function = static_cast<backend::Unary>(i);
    const backend::Limits limits{-0.5, 1.25};
    for (const int64_t count : kCounts) {
      test::expect_same_on_both(
          fmt::format("function {} of {}", i, count),
          {special_array(count, 1), test::random_array({count}, 2)},
          [&](auto on, const test::Place& place, const Inputs& in) {
            Array y = place.empty({count}), dx = place.empty({count});
            backend::unary(on, function, y, in[0], limits);
            const bool keeps_output = kept_for_gradient(function) == backend::Kept::kOutput;
            backend::unary_gradient(on, function, dx, keeps_output ? y : in[0], in[1], limits);
            return Inputs{y, dx};
          },
          2e-5);
    }
  }
}

// Pairs of shapes that broadcast, and their result's.
struct Shapes {
  Shape a, b, y;
};
const std::vector<Shapes> kShapes = {
    {{5, 24}, {5, 24}, {5, 24}},
    {{5, 24}, {24}, {5, 24}},
    {{5, 23}, {23}, {5, 23}},
    {{5, 24}, {5, 1}, {5, 24}},
    {{5, 3}, {5, 1}, {5, 3}},
    {{1, 24}, {5, 1}, {5, 24}},
    {{}, {3, 5}, {3, 5}},
    {{7, 1, 9}, {4, 1}, {7, 4, 9}},
    {{2, 1, 3, 1, 8}, {5, 1, 4, 1}, {2, 5, 3, 4, 8}},
    {{0, 3}, {3}, {0, 3}},
    {{2, 1, 3}, {1, 5, 1}, {2, 5, 3}},
    {{}, {}, {}},
    {{3, 1, 17, 16}, {2, 1, 16}, {3, 2, 17, 16}},
};

TEST_F(CudaElementwise, OperationsOfTwoOperands) {
  for (int i = 0; i <= static_cast<int>(backend::Binary::kMinimum); ++i) {
    const auto operation = static_cast<backend::Binary>(i);
    for (const Shapes& shapes : kShapes) {
      test::expect_same_on_both(
          fmt::format("operation {} at {}", i, shapes.y),
          {test::random_array(shapes.a, 1), test::random_array(shapes.b, 2),
           test::random_array(shapes.y, 3)},
          [&](auto on, const test::Place& place, const Inputs& in) {
            Array y = place.empty(shapes.y), da = y.clone(), db = y.clone(), squares = y.clone();
            backend::binary(on, operation, y, in[0], in[1]);
            backend::binary_gradient(on, operation, backend::Side::kA, da, in[0], in[1], in[2]);
            backend::binary_gradient(on, operation, backend::Side::kB, db, in[0], in[1], in[2]);
            backend::binary(on, operation, squares, in[0], 2.0);
            return Inputs{y, da, db, squares};
          },
          5e-5);
    }
  }
}

TEST_F(CudaElementwise, SpecialNumbersInPairs) {
  const Array a = special_array(10, 1).reshaped({10, 1}), b = special_array(10, 1);
  for (int i = 0; i <= static_cast<int>(backend::Binary::kMinimum); ++i) {
    const auto operation = static_cast<backend::Binary>(i);
    test::expect_same_on_both(
        fmt::format("operation {}", i), {a, b},
        [&](auto on, const test::Place& place, const Inputs& in) {
          Array y = place.empty({10, 10}), da = y.clone(), db = y.clone();
          const Array dy = Array::full({10, 10}, 0.75, place.dtype, place.device);
          backend::binary(on, operation, y, in[0], in[1]);
          backend::binary_gradient(on, operation, backend::Side::kA, da, in[0], in[1], dy);
          backend::binary_gradient(on, operation, backend::Side::kB, db, in[0], in[1], dy);
          return Inputs{y, da, db};
        },
        5e-5);
  }
}

TEST_F(CudaElementwise, IntegersWrapAround) {
  const Array a = Array::of<int32_t>({5}, {INT32_MAX, INT32_MIN, 70000, -3, 5});
  const Array b = Array::of<int32_t>({5}, {1, -1, 70000, 7, INT32_MIN});
  using backend::Binary;
  for (const Binary operation :
       {Binary::kAdd, Binary::kSubtract, Binary::kMultiply, Binary::kMaximum, Binary::kMinimum}) {
    Array here = Array::like(a), there = here.to(Device::cuda());
    backend::binary(Cpu{}, operation, here, a, b);
    backend::binary(Cuda{}, operation, there, a.to(Device::cuda()), b.to(Device::cuda()));
    test::expect_near(there, here, 0, "integers");
  }
}

TEST_F(CudaElementwise, Comparisons) {
  const Array a = special_array(10, 1).reshaped({10, 1}), b = special_array(10, 1);
  for (const DType dtype : {kFloat32, kFloat64, kInt32, kBool, kBFloat16}) {
    const DType exact = dtype == kBFloat16 ? kFloat32 : dtype;
    const Array here_a = a.to(dtype).to(exact), here_b = b.to(dtype).to(exact);
    const Array there_a = a.to(dtype).to(Device::cuda()), there_b = b.to(dtype).to(Device::cuda());
    for (int i = 0; i <= static_cast<int>(backend::Comparison::kGreaterEqual); ++i) {
      const auto comparison = static_cast<backend::Comparison>(i);
      Array here = Array::empty({10, 10}, kBool), there = here.to(Device::cuda());
      backend::compare(Cpu{}, comparison, here, here_a, here_b, exact);
      backend::compare(Cuda{}, comparison, there, there_a, there_b, dtype);
      test::expect_near(there, here, 0, fmt::format("comparison {} of {}", i, dtype));
      backend::compare(Cpu{}, comparison, here, here_a, 1.0, exact);
      backend::compare(Cuda{}, comparison, there, there_a, 1.0, dtype);
      test::expect_near(there, here, 0, fmt::format("comparison {} of {} with 1", i, dtype));
    }
  }
}

TEST_F(CudaElementwise, LogicalOperations) {
  const Array a = test::random_indices({7, 1}, 2, 1).to(kBool);
  const Array b = test::random_indices({1, 19}, 2, 2).to(kBool);
  for (const auto operation :
       {backend::Logical::kAnd, backend::Logical::kOr, backend::Logical::kXor}) {
    Array here = Array::empty({7, 19}, kBool), there = here.to(Device::cuda());
    backend::logical(Cpu{}, operation, here, a, b);
    backend::logical(Cuda{}, operation, there, a.to(Device::cuda()), b.to(Device::cuda()));
    test::expect_near(there, here, 0, "logical");
  }
}

TEST_F(CudaElementwise, Chooses) {
  for (const Shapes& shapes : kShapes) {
    const Array condition = test::random_indices(shapes.b, 2, 5).to(kBool);
    test::expect_same_on_both(fmt::format("where at {}", shapes.y),
                              {condition, test::random_array(shapes.a, 1)},
                              [&](auto on, const test::Place& place, const Inputs& in) {
                                Array y = place.empty(shapes.y), other = place.empty(shapes.y);
                                backend::where(on, y, in[0], in[1], kNaN);
                                backend::where(on, other, in[0], kInfinity, in[1]);
                                return Inputs{y, other};
                              });
  }
}

TEST_F(CudaElementwise, BroadcastsAndSumsBack) {
  for (const Shapes& shapes : kShapes) {
    for (const Shape& from : {shapes.a, shapes.b}) {
      test::expect_same_on_both(fmt::format("broadcast {} to {}", from, shapes.y),
                                {test::random_array(from, 1)},
                                [&](auto on, const test::Place& place, const Inputs& in) {
                                  Array y = place.empty(shapes.y), multiple = place.empty(shapes.y);
                                  Array sum = place.empty(from);
                                  backend::broadcast(on, y, in[0]);
                                  backend::broadcast(on, multiple, in[0], 0.3);
                                  backend::sum_to(on, sum, y);
                                  return Inputs{y, multiple, sum};
                                });
    }
  }
}

TEST_F(CudaElementwise, Losses) {
  for (const int64_t count : {0, 1, 255, 2047, 2049, 5000}) {
    const Array x = test::random_array({count}, 1), target = test::random_array({count}, 2);
    test::expect_same_on_both(
        fmt::format("losses of {}", count), {x, target, Array::full({}, 0.7, kFloat64)},
        [&](auto on, const test::Place& place, const Inputs& in) {
          Array dx = place.empty({count}), binary_dx = dx.clone(), dtarget = dx.clone();
          const Array squares = backend::mse_loss(on, in[0], in[1]);
          const Array binary = backend::binary_cross_entropy(on, in[0], in[1]);
          backend::mse_loss_backward(on, dx, in[2], in[0], in[1]);
          backend::binary_cross_entropy_backward(on, binary_dx, in[2], in[0], in[1]);
          backend::binary_cross_entropy_target_backward(on, dtarget, in[2], in[0]);
          return Inputs{squares, binary, dx, binary_dx, dtarget};
        });
  }
}

TEST_F(CudaElementwise, FindsIndicesOutside) {
  std::vector<int32_t> values(2500, 3);
  const auto first = [&](std::optional<int64_t> allowed) {
    const Array there = Array::of({2500}, values).to(Device::cuda());
    return backend::first_outside(Cuda{}, there, 4, allowed);
  };
  EXPECT_EQ(first(std::nullopt), -1);
  values[2400] = 4;
  EXPECT_EQ(first(std::nullopt), 2400);
  values[1025] = -1;
  EXPECT_EQ(first(std::nullopt), 1025);
  EXPECT_EQ(first(-1), 2400);
  EXPECT_EQ(backend::first_outside(Cuda{}, Array::empty({0}, kInt32, Device::cuda()), 4), -1);
}

}  // namespace
}  // namespace gs
