#include "framework/nn/init.h"

#include <cmath>
#include <numbers>

namespace gs::nn {
namespace {

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

// A number in (0, 1]: its logarithm is finite.
double open_unit(uint32_t word) { return (static_cast<double>(word) + 1) * 0x1p-32; }

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, Generator& generator) {
  check(low <= high, "uniform: needs low <= high, got {} and {}", low, high);
  const RandomStream stream = generator.next();
  Array values = Array::empty(shape, kFloat32);
  for (int64_t i = 0; i < values.elements(); ++i) {
    const uint32_t word = stream.words(static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
    values.data<float>()[i] =
        static_cast<float>(low + (high - low) * static_cast<double>(unit_float(word)));
  }
  return Tensor(values);
}

// Box and Muller, 1958: two words make one number here, which costs little once a run.
Tensor normal(const Shape& shape, double mean, double deviation, Generator& generator) {
  check(deviation >= 0, "normal: needs a deviation of at least 0, got {}", deviation);
  const RandomStream stream = generator.next();
  Array values = Array::empty(shape, kFloat32);
  for (int64_t i = 0; i < values.elements(); ++i) {
    const auto words = stream.words(static_cast<uint64_t>(i));
    const double radius = std::sqrt(-2 * std::log(open_unit(words[0])));
    const double angle = 2 * std::numbers::pi * static_cast<double>(unit_float(words[1]));
    values.data<float>()[i] = static_cast<float>(mean + deviation * radius * std::cos(angle));
  }
  return Tensor(values);
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
