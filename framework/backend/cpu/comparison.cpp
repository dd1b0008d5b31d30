#include "framework/backend/comparison.h"

#include <functional>

#include "framework/core/parallel.h"

// Bound by memory: each operand is read once.
namespace gs::backend {
namespace {

template <typename T, class Function>
void for_all(Array& y, const Operand& a, const Operand& b, Function function) {
  constexpr int64_t kGrain = 1 << 15, kTile = TileReader<T>::kTile;
  if (y.elements() == 0) return;
  bool* const out = y.data<bool>();
  parallel_for(0, y.elements(), kGrain, [&](int64_t first, int64_t last) {
    TileReader<T> a_reader(a, y.shape(), first), b_reader(b, y.shape(), first);
    for (int64_t start = first; start < last; start += kTile) {
      const int64_t count = std::min(kTile, last - start);
      const T *const a_tile = a_reader.next(count), *const b_tile = b_reader.next(count);
      for (int64_t i = 0; i < count; ++i) out[start + i] = function(a_tile[i], b_tile[i]);
    }
  });
}

template <typename T>
void compare_as(Comparison comparison, Array& y, const Operand& a, const Operand& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return for_all<T>(y, a, b, std::equal_to<T>());
    case Comparison::kNotEqual:
      return for_all<T>(y, a, b, std::not_equal_to<T>());
    case Comparison::kLess:
      return for_all<T>(y, a, b, std::less<T>());
    case Comparison::kLessEqual:
      return for_all<T>(y, a, b, std::less_equal<T>());
    case Comparison::kGreater:
      return for_all<T>(y, a, b, std::greater<T>());
    case Comparison::kGreaterEqual:
      return for_all<T>(y, a, b, std::greater_equal<T>());
  }
}

}  // namespace

void compare(Cpu, Comparison comparison, Array& y, const Operand& a, const Operand& b,
             DType dtype) {
  dispatch_any("compare", dtype,
               [&](auto zero) { compare_as<decltype(zero)>(comparison, y, a, b); });
}

void logical(Cpu, Logical operation, Array& y, const Operand& a, const Operand& b) {
  switch (operation) {
    case Logical::kAnd:
      return for_all<bool>(y, a, b, std::bit_and<>());
    case Logical::kOr:
      return for_all<bool>(y, a, b, std::bit_or<>());
    case Logical::kXor:
      return for_all<bool>(y, a, b, std::not_equal_to<bool>());
  }
}

}  // namespace gs::backend
