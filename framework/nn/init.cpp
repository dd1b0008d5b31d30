#include "framework/nn/init.h"

#include <cmath>

#include "framework/ops/arithmetic.h"
#include "framework/ops/creation.h"

namespace gs::nn {
namespace {

thread_local bool draws_values = true;

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape) {
  check(shape.rank() >= 2,
        "initialiser: fans need at least two dimensions, got {}; use uniform or normal", shape);
  double inner = 1;
  for (int d = 2; d < shape.rank(); ++d) inner *= static_cast<double>(shape[d]);
  return {static_cast<double>(shape[1]) * inner, static_cast<double>(shape[0]) * inner};
}

double inverse(double fan) { return fan > 0 ? 1 / fan : 0; }

}  // namespace

NoInitialValues::NoInitialValues() : before_(draws_values) { draws_values = false; }
NoInitialValues::~NoInitialValues() { draws_values = before_; }

Tensor uniform(const Shape& shape, double low, double high, Generator& generator) {
  check(low <= high, "uniform: needs low <= high, got {} and {}", low, high);
  if (!draws_values) return Tensor(Array::empty(shape, kFloat32));
  return rand(shape, {}, generator) * (high - low) + low;
}

Tensor normal(const Shape& shape, double mean, double deviation, Generator& generator) {
  check(deviation >= 0, "normal: needs a deviation of at least 0, got {}", deviation);
  if (!draws_values) return Tensor(Array::empty(shape, kFloat32));
  return randn(shape, {}, generator) * deviation + mean;
}

Tensor constant(const Shape& shape, double value) {
  return Tensor(Array::full(shape, value, kFloat32));
}

Tensor xavier_uniform(const Shape& shape, Generator& generator) {
  const Fans fans = fans_of(shape);
  const double bound = std::sqrt(6 * inverse(fans.in + fans.out));
  return uniform(shape, -bound, bound, generator);
}

Tensor xavier_normal(const Shape& shape, Generator& generator) {
  const Fans fans = fans_of(shape);
  return normal(shape, 0, std::sqrt(2 * inverse(fans.in + fans.out)), generator);
}

Tensor kaiming_uniform(const Shape& shape, Generator& generator) {
  const double bound = std::sqrt(6 * inverse(fans_of(shape).in));
  return uniform(shape, -bound, bound, generator);
}

Tensor kaiming_normal(const Shape& shape, Generator& generator) {
  return normal(shape, 0, std::sqrt(2 * inverse(fans_of(shape).in)), generator);
}

}  // namespace gs::nn
