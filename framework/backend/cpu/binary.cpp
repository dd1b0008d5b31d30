#include "framework/backend/binary.h"

#include <cmath>
#include <type_traits>

#include "framework/backend/unary.h"
#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/binary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory: each operand is read once, broadcast ones a tile at a time; powers by std::pow.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The part of dy for `one` of two operands of which the larger is taken: half of it for equals.
template <class D, class V>
HWY_INLINE V share_of_larger(D d, V one, V other, V dy) {
  const auto half = hn::Mul(dy, hn::Set(d, hn::TFromD<D>(0.5)));
  return hn::IfThenElse(hn::Eq(one, other), half, hn::IfThenZeroElse(hn::Lt(one, other), dy));
}

// The formulas: value(d, a, b), and the gradients da(d, a, b, dy) and db(d, a, b, dy).
struct Formulas {
  struct Add {
    static constexpr bool kIntegers = true;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      return hn::Add(a, b);
    }
    template <class D, class V>
    static HWY_INLINE V da(D, V, V, V dy) {
      return dy;
    }
    template <class D, class V>
    static HWY_INLINE V db(D, V, V, V dy) {
      return dy;
    }
  };

  struct Subtract {
    static constexpr bool kIntegers = true;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      return hn::Sub(a, b);
    }
    template <class D, class V>
    static HWY_INLINE V da(D, V, V, V dy) {
      return dy;
    }
    template <class D, class V>
    static HWY_INLINE V db(D, V, V, V dy) {
      return hn::Neg(dy);
    }
  };

  struct Multiply {
    static constexpr bool kIntegers = true;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      return hn::Mul(a, b);
    }
    template <class D, class V>
    static HWY_INLINE V da(D, V, V b, V dy) {
      return hn::Mul(dy, b);
    }
    template <class D, class V>
    static HWY_INLINE V db(D, V a, V, V dy) {
      return hn::Mul(dy, a);
    }
  };

  struct Divide {
    static constexpr bool kIntegers = false;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      return hn::Div(a, b);
    }
    template <class D, class V>
    static HWY_INLINE V da(D, V, V b, V dy) {
      return hn::Div(dy, b);
    }
    // -dy a / b^2, in an order in which no square overflows
    template <class D, class V>
    static HWY_INLINE V db(D, V a, V b, V dy) {
      return hn::Neg(hn::Mul(hn::Div(dy, b), hn::Div(a, b)));
    }
  };

  struct Pow {
    static constexpr bool kIntegers = false;
    template <class D, class V>
    static HWY_INLINE V value(D d, V a, V b) {
      return apply_lanes(d, a, b, [](auto x, auto y) { return std::pow(x, y); });
    }
    // b a^(b - 1); 0 for b = 0, where a^-1 may be infinite.
    template <class D, class V>
    static HWY_INLINE V da(D d, V a, V b, V dy) {
      const auto power = value(d, a, hn::Sub(b, hn::Set(d, hn::TFromD<D>(1))));
      return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Mul(dy, hn::Mul(b, power)));
    }
    // a^b log(a); 0 for a = 0 and b >= 0, where the logarithm is infinite.
    template <class D, class V>
    static HWY_INLINE V db(D d, V a, V b, V dy) {
      const auto slope = apply_lanes(d, a, b, [](auto x, auto y) {
        return x == 0 && y >= 0 ? decltype(x){0} : std::pow(x, y) * std::log(x);
      });
      return hn::Mul(dy, slope);
    }
  };

  struct Maximum {
    static constexpr bool kIntegers = true;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      if constexpr (std::is_integral_v<hn::TFromD<D>>) {
        return hn::Max(a, b);
      } else {
        return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);  // NaN if one is NaN
      }
    }
    template <class D, class V>
    static HWY_INLINE V da(D d, V a, V b, V dy) {
      return share_of_larger(d, a, b, dy);
    }
    template <class D, class V>
    static HWY_INLINE V db(D d, V a, V b, V dy) {
      return share_of_larger(d, b, a, dy);
    }
  };

  struct Minimum {
    static constexpr bool kIntegers = true;
    template <class D, class V>
    static HWY_INLINE V value(D, V a, V b) {
      if constexpr (std::is_integral_v<hn::TFromD<D>>) {
        return hn::Min(a, b);
      } else {
        return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
      }
    }
    // a is the smaller where b is the larger.
    template <class D, class V>
    static HWY_INLINE V da(D d, V a, V b, V dy) {
      return share_of_larger(d, b, a, dy);
    }
    template <class D, class V>
    static HWY_INLINE V db(D d, V a, V b, V dy) {
      return share_of_larger(d, a, b, dy);
    }
  };
};

template <typename T, class Formula>
void value_range(Formula, Array& y, const Operand& a, const Operand& b, int64_t first,
                 int64_t last) {
  constexpr int64_t kTile = TileReader<T>::kTile;
  TileReader<T> a_reader(a, y.shape(), first), b_reader(b, y.shape(), first);
  const hn::ScalableTag<T> d;
  for (int64_t start = first; start < last; start += kTile) {
    const int64_t length = HWY_MIN(kTile, last - start);
    const T *const a_tile = a_reader.next(length), *const b_tile = b_reader.next(length);
    T* const out = y.data<T>() + start;
    for_each_vector(d, length, [&](auto at) HWY_ATTR {
      store(d, Formula::value(d, load(d, a_tile, at), load(d, b_tile, at)), out, at);
    });
  }
}

template <typename T, class Formula>
void gradient_range(Formula, Side side, Array& dx, const Operand& a, const Operand& b,
                    const Array& dy, int64_t first, int64_t last) {
  constexpr int64_t kTile = TileReader<T>::kTile;
  TileReader<T> a_reader(a, dx.shape(), first), b_reader(b, dx.shape(), first);
  const hn::ScalableTag<T> d;
  for (int64_t start = first; start < last; start += kTile) {
    const int64_t length = HWY_MIN(kTile, last - start);
    const T *const a_tile = a_reader.next(length), *const b_tile = b_reader.next(length);
    const T* const in = dy.data<T>() + start;
    T* const out = dx.data<T>() + start;
    if (side == Side::kA) {
      for_each_vector(d, length, [&](auto at) HWY_ATTR {
        const auto x = load(d, a_tile, at), y = load(d, b_tile, at);
        store(d, Formula::da(d, x, y, load(d, in, at)), out, at);
      });
    } else {
      for_each_vector(d, length, [&](auto at) HWY_ATTR {
        const auto x = load(d, a_tile, at), y = load(d, b_tile, at);
        store(d, Formula::db(d, x, y, load(d, in, at)), out, at);
      });
    }
  }
}

void values(Binary operation, Array& y, const Operand& a, const Operand& b, int64_t first,
            int64_t last) {
  with_formula<Formulas>(operation, [&](auto formula) {
    const auto run = [&](auto zero) { value_range<decltype(zero)>(formula, y, a, b, first, last); };
    if constexpr (decltype(formula)::kIntegers) {
      if (y.dtype() == kInt32) return run(int32_t{});
    }
    dispatch_floating("binary", y.dtype(), run);
  });
}

void gradients(Binary operation, Side side, Array& dx, const Operand& a, const Operand& b,
               const Array& dy, int64_t first, int64_t last) {
  with_formula<Formulas>(operation, [&](auto formula) {
    dispatch_floating("binary", dx.dtype(), [&](auto zero) {
      gradient_range<decltype(zero)>(formula, side, dx, a, b, dy, first, last);
    });
  });
}

}  // namespace
}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gs::backend {
namespace {

HWY_EXPORT(values);
HWY_EXPORT(gradients);

// Powers take some hundred times as long as sums.
int64_t grain_of(Binary operation) { return operation == Binary::kPow ? 1 << 10 : 1 << 15; }

}  // namespace

void binary(Cpu cpu, Binary operation, Array& y, const Operand& a, const Operand& b) {
  if (y.elements() == 0) return;
  if (is_square(operation, a, b, y.shape())) return unary(cpu, Unary::kSquare, y, *a.array());
  parallel_for(0, y.elements(), grain_of(operation), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(values)(operation, y, a, b, first, last);
  });
}

void binary_gradient(Cpu cpu, Binary operation, Side side, Array& dx, const Operand& a,
                     const Operand& b, const Array& dy) {
  if (dx.elements() == 0) return;
  if (side == Side::kA && is_square(operation, a, b, dx.shape()))
    return unary_gradient(cpu, Unary::kSquare, dx, *a.array(), dy);
  parallel_for(0, dx.elements(), grain_of(operation), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(gradients)(operation, side, dx, a, b, dy, first, last);
  });
}

}  // namespace gs::backend
#endif
