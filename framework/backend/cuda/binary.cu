#include "framework/backend/binary.h"

#include <cmath>

#include "framework/backend/cuda/broadcast_reader.cuh"
#include "framework/backend/unary.h"

// Powers by std::pow; all others are bound by memory.
namespace gs::backend {
namespace {

// Integers wrap around.
template <typename T>
__device__ auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else {
    return x;
  }
}

// The part of dy for `one` of two operands of which the larger is taken: half of it for equals.
template <typename T>
__device__ T share_of_larger(T one, T other, T dy) {
  return one == other ? dy * T(0.5) : one < other ? T(0) : dy;
}

// The formulas, with the CPU's cpu/binary.cpp: value(a, b), and the gradients da(a, b, dy) and
// db(a, b, dy).
struct Formulas {
  struct Add {
    static constexpr bool kIntegers = true;
    template <typename T>
    __device__ static T value(T a, T b) {
      return static_cast<T>(wrapping(a) + wrapping(b));
    }
    template <typename T>
    __device__ static T da(T, T, T dy) {
      return dy;
    }
    template <typename T>
    __device__ static T db(T, T, T dy) {
      return dy;
    }
  };

  struct Subtract {
    static constexpr bool kIntegers = true;
    template <typename T>
    __device__ static T value(T a, T b) {
      return static_cast<T>(wrapping(a) - wrapping(b));
    }
    template <typename T>
    __device__ static T da(T, T, T dy) {
      return dy;
    }
    template <typename T>
    __device__ static T db(T, T, T dy) {
      return -dy;
    }
  };

  struct Multiply {
    static constexpr bool kIntegers = true;
    template <typename T>
    __device__ static T value(T a, T b) {
      return static_cast<T>(wrapping(a) * wrapping(b));
    }
    template <typename T>
    __device__ static T da(T, T b, T dy) {
      return dy * b;
    }
    template <typename T>
    __device__ static T db(T a, T, T dy) {
      return dy * a;
    }
  };

  struct Divide {
    static constexpr bool kIntegers = false;
    template <typename T>
    __device__ static T value(T a, T b) {
      return a / b;
    }
    template <typename T>
    __device__ static T da(T, T b, T dy) {
      return dy / b;
    }
    // -dy a / b^2, in an order in which no square overflows
    template <typename T>
    __device__ static T db(T a, T b, T dy) {
      return -((dy / b) * (a / b));
    }
  };

  struct Pow {
    static constexpr bool kIntegers = false;
    template <typename T>
    __device__ static T value(T a, T b) {
      return std::pow(a, b);
    }
    // b a^(b - 1); 0 for b = 0, where a^-1 may be infinite.
    template <typename T>
    __device__ static T da(T a, T b, T dy) {
      return b == 0 ? T(0) : dy * (b * std::pow(a, b - T(1)));
    }
    // a^b log(a); 0 for a = 0 and b >= 0, where the logarithm is infinite.
    template <typename T>
    __device__ static T db(T a, T b, T dy) {
      return dy * (a == 0 && b >= 0 ? T(0) : std::pow(a, b) * std::log(a));
    }
  };

  struct Maximum {
    static constexpr bool kIntegers = true;
    template <typename T>
    __device__ static T value(T a, T b) {
      return a > b || a != a ? a : b;  // NaN if one is NaN
    }
    template <typename T>
    __device__ static T da(T a, T b, T dy) {
      return share_of_larger(a, b, dy);
    }
    template <typename T>
    __device__ static T db(T a, T b, T dy) {
      return share_of_larger(b, a, dy);
    }
  };

  struct Minimum {
    static constexpr bool kIntegers = true;
    template <typename T>
    __device__ static T value(T a, T b) {
      return a < b || a != a ? a : b;
    }
    // a is the smaller where b is the larger.
    template <typename T>
    __device__ static T da(T a, T b, T dy) {
      return share_of_larger(b, a, dy);
    }
    template <typename T>
    __device__ static T db(T a, T b, T dy) {
      return share_of_larger(a, b, dy);
    }
  };
};

template <typename Formula>
struct Value {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return Formula::value(a, b);
  }
};

template <typename Formula>
struct Gradient {
  Side side;
  template <typename T>
  __device__ T operator()(T a, T b, T dy) const {
    return side == Side::kA ? Formula::da(a, b, dy) : Formula::db(a, b, dy);
  }
};

}  // namespace

void binary(Cuda device, Binary operation, Array& y, const Operand& a, const Operand& b) {
  if (y.elements() == 0) return;
  if (is_square(operation, a, b, y.shape())) return unary(device, Unary::kSquare, y, *a.array());
  with_formula<Formulas>(operation, [&](auto formula) {
    using Formula = decltype(formula);
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      map("binary", device, y.elements(), elements_of<T>(y), Value<Formula>(),
          BroadcastReader<T>(a, y.shape()), BroadcastReader<T>(b, y.shape()));
    };
    if constexpr (Formula::kIntegers) {
      if (y.dtype() == kInt32) return run(int32_t{});
    }
    dispatch_element("binary", y.dtype(), run);
  });
}

void binary_gradient(Cuda device, Binary operation, Side side, Array& dx, const Operand& a,
                     const Operand& b, const Array& dy) {
  if (dx.elements() == 0) return;
  if (side == Side::kA && is_square(operation, a, b, dx.shape()))
    return unary_gradient(device, Unary::kSquare, dx, *a.array(), dy);
  with_formula<Formulas>(operation, [&](auto formula) {
    dispatch_element("binary", dx.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map("binary_gradient", device, dx.elements(), elements_of<T>(dx),
          Gradient<decltype(formula)>{side}, BroadcastReader<T>(a, dx.shape()),
          BroadcastReader<T>(b, dx.shape()), elements_of<T>(dy));
    });
  });
}

}  // namespace gs::backend
