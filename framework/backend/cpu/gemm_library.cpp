#include "framework/backend/cpu/gemm_library.h"

#include <dlfcn.h>

#include <array>
#include <limits>
#include <vector>

namespace gs::backend {
namespace {

// Small whole numbers without a pattern that a wrong kernel could share.
int64_t number(int64_t seed, int64_t i) { return (seed + i * i * 7 + i * 5) % 11 - 5; }

// With a_il = p_i + q_l and b_lj = r_l + s_j the sums have a closed form, exact in float32:
// sum_l (p_i + q_l) (r_l + s_j) = p_i sum r + sum q r + k p_i s_j + s_j sum q.
template <typename T>
bool multiplies_rightly(void (*multiply)(const GemmSizes&, const T*, const T*, T*),
                        GemmSizes sizes) {
  const auto [m, n, k] = std::array{sizes.m, sizes.n, sizes.k};
  sizes.a_stride = sizes.transpose_a ? m : k;
  sizes.b_stride = sizes.transpose_b ? k : n;
  sizes.c_stride = n;
  std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l)
      a[static_cast<size_t>(sizes.transpose_a ? l * m + i : i * k + l)] =
          static_cast<T>(number(1, i) + number(2, l));
  }
  for (int64_t l = 0; l < k; ++l) {
    for (int64_t j = 0; j < n; ++j)
      b[static_cast<size_t>(sizes.transpose_b ? j * k + l : l * n + j)] =
          static_cast<T>(number(3, l) + number(4, j));
  }
  // With beta = 0 what was in C must not matter.
  std::vector<T> c(static_cast<size_t>(m * n),
                   sizes.beta == 0 ? std::numeric_limits<T>::quiet_NaN() : T(3));
  multiply(sizes, a.data(), b.data(), c.data());
  int64_t q = 0, r = 0, qr = 0;
  for (int64_t l = 0; l < k; ++l) {
    q += number(2, l);
    r += number(3, l);
    qr += number(2, l) * number(3, l);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t sum =
          number(1, i) * r + qr + k * number(1, i) * number(4, j) + number(4, j) * q;
      const double expected = sizes.alpha * static_cast<double>(sum) + sizes.beta * 3;
      if (static_cast<double>(c[static_cast<size_t>(i * n + j)]) != expected) return false;
    }
  }
  return true;
}

// Beyond one block of registers in each direction, with odd remainders.
template <typename T>
bool multiplies_rightly(void (*multiply)(const GemmSizes&, const T*, const T*, T*)) {
  for (int form = 0; form < 4; ++form) {
    const GemmSizes sizes{.m = 53,
                          .n = 27,
                          .k = 35,
                          .transpose_a = (form & 1) != 0,
                          .transpose_b = (form & 2) != 0,
                          .a_stride = 0,
                          .b_stride = 0,
                          .c_stride = 0,
                          .alpha = form == 3 ? -2.0 : 1.0,
                          .beta = form == 3 ? 1.0 : 0.0};
    if (!multiplies_rightly(multiply, sizes)) return false;
  }
  return true;
}

}  // namespace

void check_products(const GemmLibrary& library) {
  const bool right =
      multiplies_rightly(library.multiply_float) &&
      (library.multiply_double == nullptr || multiplies_rightly(library.multiply_double));
  check(right, "{}: its kernels multiply wrongly on this processor; {}", library.title,
        library.remedy);
}

void* find_symbol(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  check(symbol != nullptr, "{}: the library lacks this function; run tools/setup.sh", name);
  return symbol;
}

}  // namespace gs::backend
