#include "framework/backend/gemm.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <limits>

#include "framework/backend/cpu/gemm_library.h"
#include "framework/core/parallel.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using backend::gemm;
using backend::GemmSizes;

// Runs the body with each library that is installed.
void for_each_library(const std::function<void()>& body) {
  const size_t count = backend::gemm_libraries().size();
  for (const char* name : {"openblas", "onednn"}) {
    if (std::string(name) == "onednn" && count < 2) continue;
    SCOPED_TRACE(name);
    backend::use_gemm_library(name);
    body();
  }
}

template <typename T>
std::vector<T> numbers(int64_t count, int seed) {
  std::vector<T> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<T>(
        std::sin(static_cast<double>(i * 37 + static_cast<size_t>(seed) * 101) * 0.7));
  }
  return result;
}

template <typename T>
void expect_product(GemmSizes s, double tolerance) {
  const std::vector<T> a = numbers<T>((s.transpose_a ? s.k : s.m) * s.a_stride, 1);
  const std::vector<T> b = numbers<T>((s.transpose_b ? s.n : s.k) * s.b_stride, 2);
  const std::vector<T> before = numbers<T>(s.m * s.c_stride, 3);
  std::vector<T> c = before;
  // With beta = 0 C must not be read: OpenMathLib/OpenBLAS#929.
  if (s.beta == 0) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j)
        c[static_cast<size_t>(i * s.c_stride + j)] = std::numeric_limits<T>::quiet_NaN();
    }
  }
  gemm(Cpu{}, s, a.data(), b.data(), c.data());
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.c_stride; ++j) {
      const auto at = static_cast<size_t>(i * s.c_stride + j);
      if (j >= s.n) {
        ASSERT_EQ(c[at], before[at]) << "the gap between rows was written";
        continue;
      }
      double sum = 0, size = 1;
      for (int64_t l = 0; l < s.k; ++l) {
        const double x =
            a[static_cast<size_t>(s.transpose_a ? l * s.a_stride + i : i * s.a_stride + l)];
        const double y =
            b[static_cast<size_t>(s.transpose_b ? j * s.b_stride + l : l * s.b_stride + j)];
        sum += x * y;
        size += std::abs(x * y);
      }
      const double expected =
          s.alpha * sum + (s.beta == 0 ? 0 : s.beta * static_cast<double>(before[at]));
      ASSERT_NEAR(c[at], expected, tolerance * size)
          << s.m << " x " << s.n << " x " << s.k << " at " << i << ", " << j;
    }
  }
}

template <typename T>
void expect_all_forms(int64_t m, int64_t n, int64_t k, double tolerance) {
  for (int form = 0; form < 8; ++form) {
    GemmSizes s{.m = m, .n = n, .k = k, .a_stride = 0, .b_stride = 0, .c_stride = n + 3};
    s.transpose_a = form & 1;
    s.transpose_b = form & 2;
    s.beta = form & 4 ? 0.5 : 0;
    s.alpha = form & 4 ? -2 : 1;
    s.a_stride = (s.transpose_a ? m : k) + 2;
    s.b_stride = (s.transpose_b ? k : n) + 1;
    expect_product<T>(s, tolerance);
  }
}

TEST(Gemm, AllSmallShapesInAllForms) {
  for_each_library([] {
    for (int64_t m = 0; m <= 5; ++m) {
      for (int64_t n = 0; n <= 5; ++n) {
        for (int64_t k = 0; k <= 5; ++k) {
          expect_all_forms<float>(m, n, k, 1e-6);
          expect_all_forms<double>(m, n, k, 1e-14);
        }
      }
    }
  });
}

TEST(Gemm, OddAndLargerShapes) {
  for_each_library([] {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{9, 7, 8},
                                  {33, 65, 17},
                                  {131, 67, 257},
                                  {1, 300, 70},
                                  {300, 1, 70},
                                  {700, 64, 65},
                                  {64, 700, 3}}) {
      expect_all_forms<float>(m, n, k, 2e-6);
      expect_all_forms<double>(m, n, k, 1e-13);
    }
  });
}

// What stands in A, B and C must not matter where it is multiplied by 0: oneDNN 2.6 leaves a NaN
// of C with alpha = 0.
TEST(Gemm, AlphaOfZeroLeavesBetaTimesC) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_library([&] {
    for (const int64_t k : {0, 1, 9}) {
      const std::vector<float> operands(45, nan);
      GemmSizes sizes{.m = 5, .n = 5, .k = k, .a_stride = 9, .b_stride = 5, .c_stride = 5};
      sizes.alpha = 0;
      std::vector<float> c(25, nan);
      gemm(Cpu{}, sizes, operands.data(), operands.data(), c.data());
      EXPECT_EQ(c, std::vector<float>(25, 0)) << k;
      sizes.beta = -0.5;
      c.assign(25, 3);
      gemm(Cpu{}, sizes, operands.data(), operands.data(), c.data());
      EXPECT_EQ(c, std::vector<float>(25, -1.5f)) << k;
    }
  });
}

// The products of a library that does one thing wrong.
enum class Fault {
  kNone,
  kLosesASum,
  kIgnoresTransposedA,
  kIgnoresTransposedB,
  kReadsC,
  kLeavesOne
};

template <Fault fault>
void multiply_with(const GemmSizes& sizes, const float* a, const float* b, float* c) {
  GemmSizes s = sizes;
  float& last = c[s.m * s.c_stride - 1];
  const float before = last;
  if (fault == Fault::kLosesASum) --s.k;
  if (fault == Fault::kIgnoresTransposedA) s.transpose_a = false, s.a_stride = s.k;
  if (fault == Fault::kIgnoresTransposedB) s.transpose_b = false, s.b_stride = s.n;
  if (fault == Fault::kReadsC) s.beta = 1;
  backend::open_blas().multiply_float(s, a, b, c);
  if (fault == Fault::kLeavesOne) last = before;
}

TEST(Gemm, ALibraryThatMultipliesWronglyIsAnError) {
  backend::GemmLibrary library{"wrong", "Wrong (Kernels)", "use another", nullptr, nullptr};
  library.multiply_float = multiply_with<Fault::kNone>;
  backend::check_products(library);
  for (const auto multiply :
       {multiply_with<Fault::kLosesASum>, multiply_with<Fault::kIgnoresTransposedA>,
        multiply_with<Fault::kIgnoresTransposedB>, multiply_with<Fault::kReadsC>,
        multiply_with<Fault::kLeavesOne>}) {
    library.multiply_float = multiply;
    EXPECT_EQ(test::error_of([&] { backend::check_products(library); }),
              "Wrong (Kernels): its kernels multiply wrongly on this processor; use another");
  }
}

TEST(Gemm, NanInTheInputShowsInTheOutput) {
  for_each_library([] {
    std::vector<float> a(64, 1), b(64, 0), c(64);
    a[9] = std::numeric_limits<float>::quiet_NaN();
    gemm(Cpu{}, {.m = 8, .n = 8, .k = 8, .a_stride = 8, .b_stride = 8, .c_stride = 8}, a.data(),
         b.data(), c.data());
    for (int j = 0; j < 8; ++j) {
      EXPECT_EQ(c[static_cast<size_t>(j)], 0);
      EXPECT_TRUE(std::isnan(c[static_cast<size_t>(8 + j)]));
    }
  });
}

TEST(Gemm, BatchTakesMatricesAtTheirOffsets) {
  const std::vector<double> a = numbers<double>(40, 1), b = numbers<double>(40, 2);
  std::vector<double> c(27, -1);
  const GemmSizes sizes{.m = 3, .n = 3, .k = 2, .a_stride = 2, .b_stride = 3, .c_stride = 3};
  gemm_batch(Cpu{}, sizes, {.count = 3, .a = {6, 0, 6}, .b = {0, 6, 12}, .c = {18, 9, 0}}, a.data(),
             b.data(), c.data());
  std::vector<double> expected(9);
  gemm(Cpu{}, sizes, a.data() + 6, b.data() + 12, expected.data());
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(c[i], expected[i]);
}

TEST(Gemm, UnknownLibraryIsRefused) {
  EXPECT_EQ(test::error_of([] { backend::use_gemm_library("mkl"); }),
            "GEMM library: unknown, got 'mkl'; use openblas or onednn");
}

// OpenMathLib/OpenBLAS#294, #240: a child that multiplies after a fork must not wait for the
// parent's threads.
TEST(Gemm, ForkedChildMultiplies) {
  for_each_library([] {
    const int64_t n = 400;
    const std::vector<float> a = numbers<float>(n * n, 1);
    const GemmSizes sizes{.m = n, .n = n, .k = n, .a_stride = n, .b_stride = n, .c_stride = n};
    std::vector<float> expected(static_cast<size_t>(n * n)), c(static_cast<size_t>(n * n));
    gemm(Cpu{}, sizes, a.data(), a.data(), expected.data());
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      gemm(Cpu{}, sizes, a.data(), a.data(), c.data());
      double error = 0;
      for (size_t i = 0; i < c.size(); ++i)
        error = std::max<double>(error, std::abs(c[i] - expected[i]));
      _exit(error < 1e-3 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  });
}

}  // namespace
}  // namespace gs
