#include "framework/backend/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/backend/copy.h"
#include "framework/backend/sum_to.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

TEST(Array, HandlesShareMemoryAndCopiesDoNot) {
  Array a = Array::of<float>({2, 2}, {1, 2, 3, 4});
  const Array same = a.reshaped({4});
  const Array copy = a.clone();
  a.data<float>()[0] = -100;
  EXPECT_EQ(same.data<float>()[0], -100);
  EXPECT_EQ(copy.data<float>()[0], 1);
  EXPECT_TRUE(a.shares_memory(same));
  EXPECT_FALSE(a.shares_memory(copy));
  EXPECT_FALSE(a.sole());
  EXPECT_TRUE(copy.sole());
}

TEST(Array, TheHostMayWriteWhereItWasCopiedFrom) {
  test::for_each_device([](Device device) {
    Array host = Array::of<float>({3}, {1, 2, 3});
    const Array copy = host.to(device);
    host.data<float>()[0] = 9;
    EXPECT_EQ(copy.values<float>(), (std::vector<float>{1, 2, 3}));
  });
}

TEST(Array, RefusesWrongUse) {
  const Array a = Array::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(test::error_of([&] { (void)a.data<double>(); }),
            "array: read as float64, but it holds float32");
  EXPECT_EQ(test::error_of([&] { (void)a.reshaped({3}); }),
            "reshape: [2, 2] has 4 elements, got [3] with 3");
  EXPECT_EQ(test::error_of([&] {
              Array::of<float>({3}, {1, 2});
            }),
            "array: [3] needs 3 values, got 2");
  EXPECT_EQ(test::error_of([&] { (void)Array().device(); }),
            "array: it is undefined; give it a value first");
  const std::string reason = test::reason_without_cuda();
  if (reason.empty()) return;
  EXPECT_EQ(test::error_of([&] { Array::empty({2}, kFloat32, Device::cuda()); }),
            kWithCuda ? "device cuda:0: no CUDA device is visible; use cpu"
                      : "device cuda:0: this build has no CUDA; use cpu");
}

TEST(Array, CastsRoundAndClamp) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Array x = Array::of<double>({6}, {1.9, -1.9, 3e10, -infinity, std::nan(""), 0});
  EXPECT_EQ(x.to(kInt32).values<int32_t>(),
            (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, 0}));
  EXPECT_EQ(x.to(kBool).values<bool>(), (std::vector<bool>{true, true, true, true, true, false}));
  // bfloat16 keeps eight bits, ties to even: 1 + 2^-8 falls to 1, 1 + 3 * 2^-8 rises to 1 + 2^-6.
  const Array y = Array::of<float>({4}, {1 + 0x1p-8f, 1 + 0x3p-8f, INFINITY, NAN});
  const std::vector<float> back = y.to(kBFloat16).to(kFloat32).values<float>();
  EXPECT_EQ(back[0], 1);
  EXPECT_EQ(back[1], 1 + 0x1p-6f);
  EXPECT_TRUE(std::isinf(back[2]));
  EXPECT_TRUE(std::isnan(back[3]));
}

TEST(Memory, FiguresCountLiveCachedAndPeakBytes) {
  release_cached_memory();
  reset_peak_memory();
  const MemoryFigures before = memory_figures();
  EXPECT_EQ(before.cached, 0);
  const void* first = nullptr;
  {
    const Array a = Array::empty({1000}, kFloat32);
    first = a.raw();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_GE(memory_figures().live - before.live, 4000);
    EXPECT_LE(memory_figures().live - before.live, 5000);
  }
  EXPECT_EQ(memory_figures().live, before.live);
  EXPECT_GE(memory_figures().cached, 4000);
  EXPECT_GE(memory_figures().peak - before.live, 4000);
  // The block is used again, also for a size a little smaller.
  EXPECT_EQ(Array::empty({990}, kFloat32).raw(), first);
  release_cached_memory();
  EXPECT_EQ(memory_figures().cached, 0);
}

TEST(Memory, AbsurdSizesAreRefused) {
  EXPECT_EQ(test::error_of([] { Array::empty({int64_t{1} << 62}, kFloat64); }),
            "array: too many bytes in [4611686018427387904] of float64");
  const std::string message = test::error_of([] { Array::empty({int64_t{1} << 58}, kFloat32); });
  EXPECT_EQ(message.substr(0, 44), "memory: cannot allocate 1152921504606846976 ");
}

// microsoft/onnxruntime#28463 and others sum in one float: 10^7 times 0.1 must keep six digits.
TEST(SumTo, IsExactAndRightInEveryForm) {
  const int64_t count = 10000000;
  Array y = Array::empty({1}, kFloat32);
  backend::sum_to(Cpu{}, y, Array::full({count}, 1, kFloat32));
  EXPECT_EQ(y.data<float>()[0], 1e7f);
  backend::sum_to(Cpu{}, y, Array::full({count}, 0.1, kFloat32));
  EXPECT_NEAR(y.data<float>()[0], static_cast<double>(0.1f) * 1e7, 1);
  std::vector<double> values(2 * 3 * 2 * 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i));
  const Array x = Array::of<double>({2, 3, 2, 5}, values);
  for (const Shape& shape :
       {Shape({2, 3, 2, 5}), Shape({3, 1, 5}), Shape({1, 3, 1, 5}), Shape({2, 1, 2, 1}), Shape({5}),
        Shape({1, 1, 1, 1}), Shape({2, 1}), Shape()}) {
    std::vector<double> expected(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t place[] = {static_cast<int64_t>(i) / 30, static_cast<int64_t>(i) / 10 % 3,
                               static_cast<int64_t>(i) / 5 % 2, static_cast<int64_t>(i) % 5};
      int64_t at = 0;
      for (int d = 0; d < shape.rank(); ++d) {
        at = at * shape[d] + (shape[d] == 1 ? 0 : place[4 - shape.rank() + d]);
      }
      expected[static_cast<size_t>(at)] += values[i];
    }
    Array sum = Array::empty(shape, kFloat64);
    backend::sum_to(Cpu{}, sum, x);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(sum.data<double>()[i], expected[i], 1e-14) << shape.text();
  }
}

}  // namespace
}  // namespace gs
