#include "framework/backend/unary.h"

#include <type_traits>

#include "framework/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "framework/backend/cpu/unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "framework/backend/cpu/exp_lanes-inl.h"
#include "framework/backend/cpu/lanes-inl.h"

// Bound by memory where the formula is short, by the arithmetic of the polynomials where it has
// an exponential or logarithm.
HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// 1 / (1 + e^-x): infinity in the denominator gives 0.
template <class D, class V>
HWY_INLINE V sigmoid_lanes(D d, V x) {
  const auto one = constant(d, 1);
  return hn::Div(one, hn::Add(one, exp_lanes(d, hn::Neg(x))));
}

// The formulas: value(d, x), and gradient(d, kept, dy) from x or y (see kept_for_gradient).
struct Formulas {
  struct Negate {
    template <class D, class V>
    static HWY_INLINE V value(D, V x) {
      return hn::Neg(x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D, V, V dy) {
      return hn::Neg(dy);
    }
  };

  struct Exp {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return exp_lanes(d, x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D, V y, V dy) {
      return hn::Mul(dy, y);
    }
  };

  struct Log {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return log_lanes(d, x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D, V x, V dy) {
      return hn::Div(dy, x);
    }
  };

  struct Sqrt {
    template <class D, class V>
    static HWY_INLINE V value(D, V x) {
      return hn::Sqrt(x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V y, V dy) {
      return hn::Div(hn::Mul(constant(d, 0.5), dy), y);
    }
  };

  struct Rsqrt {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return hn::Div(constant(d, 1), hn::Sqrt(x));
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V y, V dy) {
      return hn::Mul(hn::Mul(constant(d, -0.5), dy), hn::Mul(y, hn::Mul(y, y)));
    }
  };

  struct Abs {
    template <class D, class V>
    static HWY_INLINE V value(D, V x) {
      return hn::Abs(x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V x, V dy) {
      return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(d)),
                                hn::Mul(dy, hn::CopySign(constant(d, 1), x)));
    }
  };

  struct Square {
    template <class D, class V>
    static HWY_INLINE V value(D, V x) {
      return hn::Mul(x, x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D, V x, V dy) {
      return hn::Mul(dy, hn::Add(x, x));
    }
  };

  struct Tanh {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return tanh_lanes(d, x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V y, V dy) {
      return hn::Mul(dy, hn::NegMulAdd(y, y, constant(d, 1)));
    }
  };

  struct Sigmoid {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return sigmoid_lanes(d, x);
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V y, V dy) {
      return hn::Mul(dy, hn::Mul(y, hn::Sub(constant(d, 1), y)));
    }
  };

  struct Relu {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return hn::IfThenZeroElse(hn::Le(x, hn::Zero(d)), x);  // NaN stays
    }
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V y, V dy) {
      return hn::IfThenZeroElse(hn::Le(y, hn::Zero(d)), dy);
    }
  };

  // x Phi(x), Phi(x) = (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel, 2016)
  struct Gelu {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return hn::Mul(x, normal_share_lanes(d, x));
    }
    // Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V x, V dy) {
      const auto power = exp_lanes(d, hn::Mul(constant(d, -0.5), hn::Mul(x, x)));
      const auto density = hn::Mul(constant(d, 0.39894228040143268), power);
      return hn::Mul(dy, hn::MulAdd(x, density, normal_share_lanes(d, x)));
    }
  };

  // x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the approximation of
  // the same paper
  struct GeluTanh {
    template <class D, class V>
    static HWY_INLINE V probability(D d, V x) {
      const auto cubic = hn::MulAdd(constant(d, 0.044715), hn::Mul(x, x), constant(d, 1));
      return sigmoid_lanes(d, hn::Mul(hn::Mul(constant(d, 1.5957691216057308), x), cubic));
    }
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return hn::Mul(x, probability(d, x));
    }
    // s + x s (1 - s) 2 u' with s = sigmoid(2 u). The second term is 0 beyond 16, where its factors
    // would overflow.
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V x, V dy) {
      const auto one = constant(d, 1), bound = constant(d, 16);
      const auto s = probability(d, x);
      const auto slope = hn::Mul(constant(d, 1.5957691216057308),
                                 hn::MulAdd(constant(d, 0.134145), hn::Mul(x, x), one));
      const auto second = hn::Mul(hn::Mul(x, s), hn::Mul(hn::Sub(one, s), slope));
      const auto vanishing = hn::IfThenZeroElse(hn::Gt(hn::Abs(x), bound), second);
      return hn::Mul(dy, hn::Add(s, vanishing));
    }
  };

  // x sigmoid(x) (Elfwing and others, 2017)
  struct Silu {
    template <class D, class V>
    static HWY_INLINE V value(D d, V x) {
      return hn::Mul(x, sigmoid_lanes(d, x));
    }
    // s (1 + x (1 - s)) with s = sigmoid(x)
    template <class D, class V>
    static HWY_INLINE V gradient(D d, V x, V dy) {
      const auto one = constant(d, 1), s = sigmoid_lanes(d, x);
      return hn::Mul(dy, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
    }
  };

  struct Clamp {
    Limits limits;

    template <class D, class V>
    HWY_INLINE V value(D d, V x) const {
      const auto low = constant(d, limits.low), high = constant(d, limits.high);
      return hn::IfThenElse(hn::Lt(x, low), low, hn::IfThenElse(hn::Gt(x, high), high, x));
    }
    template <class D, class V>
    HWY_INLINE V gradient(D d, V x, V dy) const {
      const auto low = constant(d, limits.low), high = constant(d, limits.high);
      return hn::IfThenZeroElse(hn::Or(hn::Lt(x, low), hn::Gt(x, high)), dy);
    }
  };
};

template <class Formula, typename T>
void value_range(Formula formula, T* y, const T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, count,
                  [&](auto at) HWY_ATTR { store(d, formula.value(d, load(d, x, at)), y, at); });
}

template <class Formula, typename T>
void gradient_range(Formula formula, T* dx, const T* kept, const T* dy, int64_t count) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, count, [&](auto at) HWY_ATTR {
    store(d, formula.gradient(d, load(d, kept, at), load(d, dy, at)), dx, at);
  });
}

void values(Unary function, Limits limits, Array& y, const Array& x, int64_t first, int64_t last) {
  with_formula<Formulas>(function, limits, [&](auto formula) {
    dispatch_floating("unary", x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      value_range(formula, y.data<T>() + first, x.data<T>() + first, last - first);
    });
  });
}

void gradients(Unary function, Limits limits, Array& dx, const Array& kept, const Array& dy,
               int64_t first, int64_t last) {
  with_formula<Formulas>(function, limits, [&](auto formula) {
    dispatch_floating("unary", dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      gradient_range(formula, dx.data<T>() + first, kept.data<T>() + first, dy.data<T>() + first,
                     last - first);
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

// Functions of polynomials and of <cmath> take some ten times as long as the others.
int64_t grain_of(Unary function) {
  switch (function) {
    case Unary::kExp:
    case Unary::kLog:
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kGelu:
    case Unary::kGeluTanh:
    case Unary::kSilu:
      return 1 << 12;
    default:
      return 1 << 15;
  }
}

}  // namespace

void unary(Cpu, Unary function, Array& y, const Array& x, Limits limits) {
  parallel_for(0, x.elements(), grain_of(function), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(values)(function, limits, y, x, first, last);
  });
}

void unary_gradient(Cpu, Unary function, Array& dx, const Array& kept, const Array& dy,
                    Limits limits) {
  parallel_for(0, dx.elements(), grain_of(function), [&](int64_t first, int64_t last) {
    HWY_DYNAMIC_DISPATCH(gradients)(function, limits, dx, kept, dy, first, last);
  });
}

}  // namespace gs::backend
#endif
