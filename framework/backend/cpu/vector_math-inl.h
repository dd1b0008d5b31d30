// Elementary functions of vectors, compiled once for each instruction set: include after
// highway.h. NaN and infinity go through them as through those of <cmath>.
#if defined(GS_BACKEND_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#undef GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#else
#define GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// e^x = 2^n e^r for x = n ln 2 + r, |r| <= ln 2 / 2.
template <class V>
struct ExpParts {
  V shifted;  // n, rounded and left in the low bits by adding 1.5 * 2^23
  V power;    // e^r; the polynomial is that of Moshier's Cephes library (expf)
};

template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE ExpParts<V> exp_parts(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const auto n = hn::Sub(shifted, magic);
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  return {shifted, hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f))};
}

// e^x for |x| <= 87: neither the result nor 2^n leaves the normal numbers.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp_of_moderate(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const ExpParts<V> parts = exp_parts(d, x);
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, parts.shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(di, parts.power), exponent));
}

// e^x for all x.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp_of_any(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  // Beyond these bounds the result is 0 or infinity all the same. Comparisons with NaN are false.
  const auto lower = hn::Set(d, -105.0f), upper = hn::Set(d, 89.0f);
  x = hn::IfThenElse(hn::Lt(x, lower), lower, x);
  x = hn::IfThenElse(hn::Gt(x, upper), upper, x);
  const ExpParts<V> parts = exp_parts(d, x);
  const auto n = hn::Sub(hn::BitCast(di, parts.shifted), hn::BitCast(di, hn::Set(d, 12582912.0f)));
  // 2^n in two factors, since n may be beyond what one exponent holds.
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const auto scale0 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto scale1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  return hn::Mul(hn::Mul(parts.power, scale0), scale1);
}

// e^x in float32, within 2 units in the last place, subnormal results included.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto moderate = hn::Le(hn::Abs(x), hn::Set(d, 87.0f));  // false for NaN
  if (hn::AllTrue(d, moderate)) [[likely]]
    return exp_of_moderate(d, x);
  return exp_of_any(d, x);
}

// e^x for x <= 0 in float32, without a branch: 0 instead of the subnormal results below e^-87.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp_of_nonpositive(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto lower = hn::Set(d, -87.0f);
  const auto small = hn::Lt(x, lower);  // false for NaN
  x = hn::IfThenElse(small, lower, x);
  // The bits of NaN do not survive what exp_of_moderate does with exponents.
  const auto value = hn::MulAdd(x, hn::Zero(d), exp_of_moderate(d, x));
  return hn::IfThenZeroElse(small, value);
}

// c[0] x^n + ... + c[n], by Horner's rule.
template <class D, class V, size_t n>
HWY_INLINE V polynomial(D d, V x, const float (&c)[n]) {
  namespace hn = hwy::HWY_NAMESPACE;
  auto sum = hn::Set(d, c[0]);
  for (size_t i = 1; i < n; ++i) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// ln x in float32, within 2 units in the last place; -infinity at 0, NaN below.
// x = 2^e m with m in [sqrt(1/2), sqrt(2)); the polynomial for ln m is that of Cephes (logf).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V log(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const auto normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  const auto bits = hn::BitCast(di, normal);
  // The exponent counted from sqrt(1/2), whose bits are 0x3f3504f3.
  const auto power = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(power)));
  const auto e = hn::Sub(hn::ConvertTo(d, power), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  const auto r = hn::Sub(m, one);
  const auto p = polynomial(
      d, r,
      {7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
       -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f});
  const auto square = hn::Mul(r, r);
  auto y = hn::Mul(hn::Mul(p, r), square);
  y = hn::MulAdd(e, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), square, y);
  y = hn::MulAdd(e, hn::Set(d, 0.693359375f), hn::Add(r, y));
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN stay
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

// tanh x in float32, within 3 units in the last place.
// Near 0 the polynomial of Cephes (tanhf), beyond it 1 - 2 / (e^2|x| + 1).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto one = hn::Set(d, 1.0f);
  const auto size = hn::Abs(x), square = hn::Mul(x, x);
  const auto p = polynomial(d, square,
                            {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                             1.33314422036e-1f, -3.33332819422e-1f});
  const auto near = hn::MulAdd(hn::Mul(p, square), x, x);
  const auto power = exp(d, hn::Add(size, size));
  const auto far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(power, one)));
  const auto near_zero = hn::Lt(size, hn::Set(d, 0.625f));
  return hn::CopySign(hn::IfThenElse(near_zero, near, far), x);  // of -0 as well
}

// 1 / (1 + e^-x) in float32, within 4 units in the last place; 0 where e^-x is infinite.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// The share of the standard normal distribution below x in float32, within 1.5e-7.
// It is sigmoid(x p(x^2)): p is a least-maximum fit, weighted by the effect on the result, to
// ln(Phi / (1 - Phi)) / x in double precision. Beyond 5.5 p stays, and the result is 0 or 1 anyway.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V normal_share(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto limit = hn::Set(d, 30.25f);
  auto square = hn::Mul(x, x);
  square = hn::IfThenElse(hn::Gt(square, limit), limit, square);
  const auto p =
      polynomial(d, square,
                 {3.512379498e-09f, -2.645277277e-07f, 7.929497770e-06f, -1.106124109e-04f,
                  -6.518994633e-05f, 7.266616821e-02f, 1.595769882e+00f});
  return sigmoid(d, hn::Mul(x, p));
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
