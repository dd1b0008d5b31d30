#include "framework/backend/unary.h"

#include <cmath>

#include "framework/backend/cuda/map.cuh"

namespace gs::backend {
namespace {

// 1 / (1 + e^-x): infinity in the denominator gives 0.
template <typename T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// The share of the standard normal distribution below x.
template <typename T>
__device__ T normal_share(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752));
}

// The formulas, with the CPU's cpu/unary.cpp: value(x), and gradient(kept, dy) from x or y (see
// kept_for_gradient).
struct Formulas {
  struct Negate {
    template <typename T>
    __device__ T value(T x) const {
      return -x;
    }
    template <typename T>
    __device__ T gradient(T, T dy) const {
      return -dy;
    }
  };

  struct Exp {
    template <typename T>
    __device__ T value(T x) const {
      return std::exp(x);
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return dy * y;
    }
  };

  struct Log {
    template <typename T>
    __device__ T value(T x) const {
      return std::log(x);
    }
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      return dy / x;
    }
  };

  struct Sqrt {
    template <typename T>
    __device__ T value(T x) const {
      return std::sqrt(x);
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return T(0.5) * dy / y;
    }
  };

  struct Rsqrt {
    template <typename T>
    __device__ T value(T x) const {
      return T(1) / std::sqrt(x);
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return T(-0.5) * dy * (y * (y * y));
    }
  };

  struct Abs {
    template <typename T>
    __device__ T value(T x) const {
      return std::abs(x);
    }
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      return x == 0 ? T(0) : dy * std::copysign(T(1), x);
    }
  };

  struct Square {
    template <typename T>
    __device__ T value(T x) const {
      return x * x;
    }
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      return dy * (x + x);
    }
  };

  struct Tanh {
    template <typename T>
    __device__ T value(T x) const {
      return std::tanh(x);
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return dy * (T(1) - y * y);
    }
  };

  struct Sigmoid {
    template <typename T>
    __device__ T value(T x) const {
      return sigmoid(x);
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return dy * (y * (T(1) - y));
    }
  };

  struct Relu {
    template <typename T>
    __device__ T value(T x) const {
      return x <= 0 ? T(0) : x;  // NaN stays
    }
    template <typename T>
    __device__ T gradient(T y, T dy) const {
      return y <= 0 ? T(0) : dy;
    }
  };

  // x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel, 2016)
  struct Gelu {
    template <typename T>
    __device__ T value(T x) const {
      return x * normal_share(x);
    }
    // Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      const T density = T(0.39894228040143268) * std::exp(T(-0.5) * (x * x));
      return dy * (x * density + normal_share(x));
    }
  };

  // x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the approximation of
  // the same paper
  struct GeluTanh {
    template <typename T>
    __device__ static T probability(T x) {
      return sigmoid(T(1.5957691216057308) * x * (T(0.044715) * (x * x) + T(1)));
    }
    template <typename T>
    __device__ T value(T x) const {
      return x * probability(x);
    }
    // s + x s (1 - s) 2 u' with s = sigmoid(2 u). The second term is 0 beyond 16, where its factors
    // would overflow.
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      const T s = probability(x);
      const T slope = T(1.5957691216057308) * (T(0.134145) * (x * x) + T(1));
      const T second = std::abs(x) > T(16) ? T(0) : (x * s) * ((T(1) - s) * slope);
      return dy * (s + second);
    }
  };

  // x sigmoid(x) (Elfwing and others, 2017)
  struct Silu {
    template <typename T>
    __device__ T value(T x) const {
      return x * sigmoid(x);
    }
    // s (1 + x (1 - s)) with s = sigmoid(x)
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      const T s = sigmoid(x);
      return dy * (s * (x * (T(1) - s) + T(1)));
    }
  };

  struct Clamp {
    Limits limits;

    template <typename T>
    __device__ T value(T x) const {
      const T low = static_cast<T>(limits.low), high = static_cast<T>(limits.high);
      return x < low ? low : x > high ? high : x;
    }
    template <typename T>
    __device__ T gradient(T x, T dy) const {
      const T low = static_cast<T>(limits.low), high = static_cast<T>(limits.high);
      return x < low || x > high ? T(0) : dy;
    }
  };
};

template <typename Formula>
struct Value {
  Formula formula;
  template <typename T>
  __device__ T operator()(T x) const {
    return formula.value(x);
  }
};

template <typename Formula>
struct Gradient {
  Formula formula;
  template <typename T>
  __device__ T operator()(T kept, T dy) const {
    return formula.gradient(kept, dy);
  }
};

}  // namespace

void unary(Cuda device, Unary function, Array& y, const Array& x, Limits limits) {
  with_formula<Formulas>(function, limits, [&](auto formula) {
    dispatch_element("unary", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map("unary", device, x.elements(), elements_of<T>(y), Value<decltype(formula)>{formula},
          elements_of<T>(x));
    });
  });
}

void unary_gradient(Cuda device, Unary function, Array& dx, const Array& kept, const Array& dy,
                    Limits limits) {
  const Array& read = kept_for_gradient(function) == Kept::kNothing ? dy : kept;
  with_formula<Formulas>(function, limits, [&](auto formula) {
    dispatch_element("unary", dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      map("unary_gradient", device, dx.elements(), elements_of<T>(dx),
          Gradient<decltype(formula)>{formula}, elements_of<T>(read), elements_of<T>(dy));
    });
  });
}

}  // namespace gs::backend
