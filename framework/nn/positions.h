#pragma once

#include <span>
#include <vector>

#include "framework/nn/module.h"

namespace gs::nn {

// The place of every row in its sequence, counted from 0, for packed sequences: int32 (N).
// Offsets that do not begin with 0, or fall, are refused.
Tensor packed_positions(std::span<const int32_t> offsets, Device device = Device::cpu());

// The table of Vaswani et al., 2017, section 3.5, of any width:
// PE(p, 2i) = sin(p / 10000^(2i / C)), PE(p, 2i + 1) = cos of the same. (positions, C).
Tensor sinusoidal_table(int64_t positions, int64_t width, DType dtype = kFloat32);

// Fixed sinusoidal positions. Positions of `maximum_length` and beyond are refused.
struct SinusoidalPositions : Module {
  SinusoidalPositions(int64_t maximum_length, int64_t width);
  // int32 (...) -> (..., C), of the type of what they are added to.
  Tensor operator()(const Tensor& positions, DType dtype = kFloat32) const;

  const int64_t maximum_length;

 private:
  void move_tables(Device device) override;

  Tensor exact_table_;  // float64
  Tensor table_;        // float32
};

// Positions that are trained, normal with deviation 0.02 at first.
struct LearnedPositions : Module {
  LearnedPositions(int64_t maximum_length, int64_t width);
  Tensor operator()(const Tensor& positions) const;  // int32 (...) -> (..., C)

  const int64_t maximum_length;
  Parameter weight;  // (maximum length, C)
};

}  // namespace gs::nn
