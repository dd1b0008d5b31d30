#pragma once

#include <span>
#include <vector>

#include "framework/nn/module.h"

namespace gs::nn {

// The place of every row in its sequence, counted from 0, for packed sequences: int32 (N).
Tensor packed_positions(std::span<const int32_t> offsets);

// The table of Vaswani et al., 2017, section 3.5, of any width:
// PE(p, 2i) = sin(p / 10000^(2i / C)), PE(p, 2i + 1) = cos of the same. (positions, C) float32.
Tensor sinusoidal_table(int64_t positions, int64_t width);

// Fixed sinusoidal positions. Positions of `maximum_length` and beyond are refused.
struct SinusoidalPositions : Module {
  SinusoidalPositions(int64_t maximum_length, int64_t width);
  Tensor operator()(const Tensor& positions) const;  // int32 (...) -> (..., C)

  const int64_t maximum_length;

 private:
  Tensor table_;
};

// Positions that are trained, normal with deviation 0.02 at first.
struct LearnedPositions : Module {
  LearnedPositions(int64_t maximum_length, int64_t width);
  Tensor operator()(const Tensor& positions) const;  // int32 (...) -> (..., C)

  const int64_t maximum_length;
  Parameter weight;  // (maximum length, C)
};

}  // namespace gs::nn
