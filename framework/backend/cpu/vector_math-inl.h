// Elementary functions of vectors, compiled once for each instruction set: include after
// highway.h. NaN and infinity go through them as through those of <cmath>.
#if defined(GS_BACKEND_CPU_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#undef GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#else
#define GS_BACKEND_CPU_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gs::backend::HWY_NAMESPACE {

// e^x in float32, within 2 units in the last place, subnormal results included.
// x = n ln 2 + r; the polynomial for e^r is that of Moshier's Cephes library (expf).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  // Beyond these bounds the result is 0 or infinity all the same. Comparisons with NaN are false.
  const auto lower = hn::Set(d, -105.0f), upper = hn::Set(d, 89.0f);
  x = hn::IfThenElse(hn::Lt(x, lower), lower, x);
  x = hn::IfThenElse(hn::Gt(x, upper), upper, x);
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const auto magic = hn::Set(d, 12582912.0f);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const auto n = hn::Sub(shifted, magic);
  const auto power = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic));
  auto r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  auto p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  // 2^n in two factors, since n may be beyond what one exponent holds.
  const auto half = hn::ShiftRight<1>(power);
  const auto bias = hn::Set(di, 127);
  const auto scale0 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto scale1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(power, half), bias)));
  return hn::Mul(hn::Mul(p, scale0), scale1);
}

}  // namespace gs::backend::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
