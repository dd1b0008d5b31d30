#include "framework/backend/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/backend/cuda/both_devices.h"
#include "tests/support/devices.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using backend::gemm;
using backend::gemm_batch;
using backend::GemmBatch;
using backend::GemmSizes;

constexpr Cuda kCuda{};

class GemmOnCuda : public test::CudaTest {};

Array array_of(const std::vector<double>& values, DType dtype) {
  return Array::of<double>({static_cast<int64_t>(values.size())}, values)
      .to(dtype)
      .to(Device::cuda());
}

// `count` numbers on the device.
Array numbers(int64_t count, int seed, DType dtype) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i * 37) + seed * 101.0);
  return array_of(values, dtype);
}

template <typename T>
double relative_error() {
  return std::is_same_v<T, double> ? 1e-14 : std::is_same_v<T, float> ? 1e-6 : 0x1p-8;
}

template <typename In, typename Out>
void expect_product(const GemmSizes& s) {
  const Array a = numbers((s.transpose_a ? s.k : s.m) * s.a_stride, 1, dtype_of<In>);
  const Array b = numbers((s.transpose_b ? s.n : s.k) * s.b_stride, 2, dtype_of<In>);
  const int64_t rows = s.m;
  Array c = numbers(rows * s.c_stride, 3, dtype_of<Out>);
  const std::vector<double> x = test::numbers_of(a), y = test::numbers_of(b);
  std::vector<double> before = test::numbers_of(c);
  if (s.beta == 0) {  // then C must not be read
    for (int64_t i = 0; i < rows * s.c_stride; ++i)
      if (i % s.c_stride < s.n) before[static_cast<size_t>(i)] = NAN;
    c = array_of(before, dtype_of<Out>);
  }
  gemm(kCuda, s, a.data<In>(), b.data<In>(), c.data<Out>());
  const std::vector<double> result = test::numbers_of(c);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < s.c_stride; ++j) {
      const auto at = static_cast<size_t>(i * s.c_stride + j);
      if (j >= s.n) {
        ASSERT_EQ(result[at], before[at]) << "the gap between rows was written";
        continue;
      }
      double sum = 0, size = 1;
      for (int64_t l = 0; l < s.k; ++l) {
        const double product =
            x[static_cast<size_t>(s.transpose_a ? l * s.a_stride + i : i * s.a_stride + l)] *
            y[static_cast<size_t>(s.transpose_b ? j * s.b_stride + l : l * s.b_stride + j)];
        sum += product;
        size += std::abs(s.alpha * product);
      }
      const double expected = s.alpha * sum + (s.beta == 0 ? 0 : s.beta * before[at]);
      ASSERT_NEAR(result[at], expected, relative_error<Out>() * size)
          << name_of(dtype_of<In>) << " to " << name_of(dtype_of<Out>) << ", " << s.m << " x "
          << s.n << " x " << s.k << " at " << i << ", " << j;
    }
  }
}

// All transposes, with and without beta, with rows next to each other and apart.
template <typename In, typename Out>
void expect_all_forms(int64_t m, int64_t n, int64_t k) {
  for (int form = 0; form < 16; ++form) {
    const int64_t gap = form & 8 ? 3 : 0;
    GemmSizes s{.m = m, .n = n, .k = k, .a_stride = 0, .b_stride = 0, .c_stride = 0};
    s.transpose_a = form & 1;
    s.transpose_b = form & 2;
    s.beta = form & 4 ? 0.5 : 0;
    s.alpha = form & 4 ? -2 : 1;
    s.a_stride = std::max<int64_t>(1, (s.transpose_a ? m : k) + gap);
    s.b_stride = std::max<int64_t>(1, (s.transpose_b ? k : n) + gap);
    s.c_stride = std::max<int64_t>(1, n + gap);
    expect_product<In, Out>(s);
  }
}

void expect_all_types(int64_t m, int64_t n, int64_t k) {
  expect_all_forms<float, float>(m, n, k);
  expect_all_forms<double, double>(m, n, k);
  expect_all_forms<BFloat16, BFloat16>(m, n, k);
  expect_all_forms<BFloat16, float>(m, n, k);
}

TEST_F(GemmOnCuda, AllSmallShapesInAllForms) {
  for (int64_t m = 0; m <= 3; ++m) {
    for (int64_t n = 0; n <= 3; ++n) {
      for (int64_t k = 0; k <= 3; ++k) expect_all_types(m, n, k);
    }
  }
}

TEST_F(GemmOnCuda, OddAndLargerShapes) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{9, 7, 8}, {33, 65, 17}, {1, 70, 30}, {70, 1, 30}, {64, 64, 64}})
    expect_all_types(m, n, k);
}

TEST_F(GemmOnCuda, AlphaOfZeroLeavesBetaTimesC) {
  const Array nan = Array::full({45}, NAN, kFloat32).to(Device::cuda());
  for (const int64_t k : {0, 1, 9}) {
    GemmSizes sizes{.m = 5, .n = 5, .k = k, .a_stride = 9, .b_stride = 5, .c_stride = 5};
    sizes.alpha = 0;
    Array c = Array::full({25}, NAN, kFloat32, Device::cuda());
    gemm(kCuda, sizes, nan.data<float>(), nan.data<float>(), c.data<float>());
    EXPECT_EQ(c.values<float>(), std::vector<float>(25, 0)) << k;
    sizes.beta = -0.5;
    c = Array::full({25}, 3, kFloat32, Device::cuda());
    gemm(kCuda, sizes, nan.data<float>(), nan.data<float>(), c.data<float>());
    EXPECT_EQ(c.values<float>(), std::vector<float>(25, -1.5f)) << k;
  }
}

// The batch against its products one by one.
void expect_batch(const GemmSizes& sizes, const GemmBatch& batch) {
  const Array a = numbers(60, 1, kFloat32), b = numbers(60, 2, kFloat32);
  Array c = numbers(60, 3, kFloat32), expected = c.clone();
  gemm_batch(kCuda, sizes, batch, a.data<float>(), b.data<float>(), c.data<float>());
  for (size_t i = 0; i < static_cast<size_t>(batch.count); ++i) {
    gemm(kCuda, sizes, a.data<float>() + batch.a[i], b.data<float>() + batch.b[i],
         expected.data<float>() + batch.c[i]);
  }
  const std::vector<float> actual = c.values<float>(), one_by_one = expected.values<float>();
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], one_by_one[i], 1e-6) << i;
}

TEST_F(GemmOnCuda, BatchTakesMatricesAtTheirOffsets) {
  for (const int64_t k : {2, 0}) {
    GemmSizes sizes{.m = 3, .n = 3, .k = k, .a_stride = 2, .b_stride = 3, .c_stride = 3};
    sizes.beta = 0.5;
    expect_batch(sizes, {.count = 0, .a = {}, .b = {}, .c = {}});
    expect_batch(sizes, {.count = 1, .a = {6}, .b = {3}, .c = {1}});
    expect_batch(sizes,
                 {.count = 4, .a = {0, 6, 12, 18}, .b = {0, 9, 18, 27}, .c = {0, 9, 18, 27}});
    // Broadcast operands, steps backwards, and steps that change on the way.
    expect_batch(sizes, {.count = 3, .a = {6, 6, 6}, .b = {0, 9, 18}, .c = {9, 18, 27}});
    expect_batch(sizes, {.count = 3, .a = {6, 0, 6}, .b = {0, 6, 12}, .c = {18, 9, 0}});
    expect_batch(sizes, {.count = 6,
                         .a = {0, 6, 12, 0, 6, 12},
                         .b = {0, 0, 0, 9, 9, 9},
                         .c = {0, 9, 18, 27, 36, 45}});
    expect_batch(sizes,
                 {.count = 5, .a = {0, 1, 2, 4, 6}, .b = {0, 1, 2, 3, 4}, .c = {0, 9, 18, 27, 36}});
  }
}

TEST_F(GemmOnCuda, BatchOfEveryType) {
  const GemmSizes sizes{.m = 2, .n = 3, .k = 4, .a_stride = 4, .b_stride = 3, .c_stride = 3};
  const GemmBatch batch{.count = 3, .a = {0, 8, 16}, .b = {0, 0, 0}, .c = {0, 6, 12}};
  const auto expect = [&](auto in, auto out) {
    using In = decltype(in);
    using Out = decltype(out);
    const Array a = numbers(24, 1, dtype_of<In>), b = numbers(12, 2, dtype_of<In>);
    Array c = numbers(18, 3, dtype_of<Out>), expected = numbers(18, 4, dtype_of<Out>);
    gemm_batch(kCuda, sizes, batch, a.data<In>(), b.data<In>(), c.data<Out>());
    // One product of 6 rows, as B is shared.
    GemmSizes whole = sizes;
    whole.m = 6;
    gemm(kCuda, whole, a.data<In>(), b.data<In>(), expected.data<Out>());
    const std::vector<double> actual = test::numbers_of(c), once = test::numbers_of(expected);
    for (size_t i = 0; i < 18; ++i) EXPECT_NEAR(actual[i], once[i], 4 * relative_error<Out>()) << i;
  };
  expect(float{}, float{});
  expect(double{}, double{});
  expect(BFloat16{}, BFloat16{});
  expect(BFloat16{}, float{});
}

// With 8 mantissa bits a sum of ones would stay at 256.
TEST_F(GemmOnCuda, Bfloat16IsSummedInFloat32) {
  const int64_t k = 1000;
  const Array ones = Array::full({k}, 1, kBFloat16).to(Device::cuda());
  const GemmSizes sizes{.m = 1, .n = 1, .k = k, .a_stride = k, .b_stride = 1, .c_stride = 1};
  Array sum = Array::zeros({1}, kFloat32, Device::cuda());
  gemm(kCuda, sizes, ones.data<BFloat16>(), ones.data<BFloat16>(), sum.data<float>());
  EXPECT_EQ(sum.values<float>(), std::vector<float>{1000});
  Array rounded = Array::empty({1}, kBFloat16, Device::cuda());
  gemm(kCuda, sizes, ones.data<BFloat16>(), ones.data<BFloat16>(), rounded.data<BFloat16>());
  EXPECT_EQ(test::numbers_of(rounded)[0], 1000);
}

TEST_F(GemmOnCuda, NanInTheInputShowsInTheOutput) {
  std::vector<float> values(64, 1);
  values[9] = NAN;
  const Array a = Array::of<float>({64}, values).to(Device::cuda());
  const Array b = Array::zeros({64}, kFloat32, Device::cuda());
  Array c = Array::like(a);
  gemm(kCuda, {.m = 8, .n = 8, .k = 8, .a_stride = 8, .b_stride = 8, .c_stride = 8},
       a.data<float>(), b.data<float>(), c.data<float>());
  const std::vector<float> result = c.values<float>();
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(std::isnan(result[i]), i / 8 == 1) << i;
}

TEST_F(GemmOnCuda, GivesTheSameBitsEachTime) {
  const GemmSizes sizes{
      .m = 67, .n = 45, .k = 129, .a_stride = 129, .b_stride = 45, .c_stride = 45};
  const Array a = numbers(67 * 129, 1, kFloat32), b = numbers(45 * 129, 2, kFloat32);
  std::vector<float> first;
  for (int i = 0; i < 3; ++i) {
    Array c = Array::full({67 * 45}, i, kFloat32, Device::cuda());
    gemm(kCuda, sizes, a.data<float>(), b.data<float>(), c.data<float>());
    if (i == 0) first = c.values<float>();
    EXPECT_EQ(c.values<float>(), first);
  }
}

// Timing tries algorithms without changing C, which beta reads.
TEST_F(GemmOnCuda, SettingsKeepTheResult) {
  EXPECT_FALSE(backend::uses_tf32());
  EXPECT_FALSE(backend::times_gemm_algorithms());
  backend::time_gemm_algorithms(true);
  expect_all_types(11, 13, 15);
  backend::time_gemm_algorithms(false);
  backend::use_tf32(true);
  const GemmSizes sizes{.m = 1, .n = 1, .k = 1, .a_stride = 1, .b_stride = 1, .c_stride = 1};
  const Array x = Array::full({1}, 1.0 / 3, kFloat32, Device::cuda());
  Array y = Array::like(x);
  gemm(kCuda, sizes, x.data<float>(), x.data<float>(), y.data<float>());
  backend::use_tf32(false);
  EXPECT_NEAR(y.values<float>()[0], 1.0 / 9, 1e-3);
}

TEST_F(GemmOnCuda, RefusesWhatTheLibraryCannotCount) {
  const int64_t large = int64_t{1} << 31;
  EXPECT_EQ(test::error_of([&] {
              gemm(kCuda, {.m = large, .n = 1, .k = 1, .a_stride = 1, .b_stride = 1, .c_stride = 1},
                   static_cast<const float*>(nullptr), nullptr, static_cast<float*>(nullptr));
            }),
            "gemm: sizes beyond 2^31 - 1, got 2147483648 x 1 x 1; split the product");
}

}  // namespace
}  // namespace gs
