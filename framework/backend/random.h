#pragma once

#include <cmath>

#include "framework/backend/array.h"
#include "framework/core/random.h"

namespace gs::backend {

// Element i is made of the stream's words(i / 4), so that a result depends on neither threads nor
// device. float64 holds the numbers of float32, unrounded.

// y = uniform numbers in [low, high).
void random_uniform(Cpu, Array& y, RandomStream stream, double low, double high);
void random_uniform(Cuda, Array& y, RandomStream stream, double low, double high);

// y = normal numbers.
void random_normal(Cpu, Array& y, RandomStream stream, double mean, double deviation);
void random_normal(Cuda, Array& y, RandomStream stream, double mean, double deviation);

// y = int32 numbers in [low, high), each as likely as any other to within 2^-32.
void random_integers(Cpu, Array& y, RandomStream stream, int64_t low, int64_t high);
void random_integers(Cuda, Array& y, RandomStream stream, int64_t low, int64_t high);

// The largest number of the type below `high`, which rounding must not reach.
template <typename T>
T below(double high) {
  const T rounded = static_cast<T>(high);
  return static_cast<double>(rounded) < high ? rounded
                                             : std::nextafter(rounded, -static_cast<T>(INFINITY));
}

}  // namespace gs::backend
