#include "framework/nn/positions.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "framework/nn/init.h"
#include "framework/ops/cast.h"
#include "framework/ops/embedding.h"
#include "framework/ops/index_checks.h"

namespace gs::nn {
namespace {

void check_positions(const Tensor& positions, int64_t maximum_length) {
  if (trusts_indices()) return;
  const std::vector<int32_t> values = positions.values<int32_t>();
  if (values.empty()) return;
  const int64_t length = *std::max_element(values.begin(), values.end()) + int64_t{1};
  check(length <= maximum_length,
        "positions: a sequence of {} is longer than the limit of {}; shorten it, or make the model "
        "with a larger maximum length",
        length, maximum_length);
}

}  // namespace

Tensor packed_positions(std::span<const int32_t> offsets, Device device) {
  check(offsets.empty() || offsets.front() == 0, "positions: offsets must begin with 0, got {}",
        offsets.empty() ? 0 : offsets.front());
  const auto fall = std::adjacent_find(offsets.begin(), offsets.end(), std::greater<int32_t>());
  check(fall == offsets.end(), "positions: offsets must not fall, got {} before {}",
        fall == offsets.end() ? 0 : *fall, fall == offsets.end() ? 0 : *(fall + 1));
  std::vector<int32_t> positions(offsets.empty() ? 0 : static_cast<size_t>(offsets.back()));
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (int32_t row = offsets[b]; row < offsets[b + 1]; ++row) {
      positions[static_cast<size_t>(row)] = row - offsets[b];
    }
  }
  const Array array = Array::of<int32_t>({static_cast<int64_t>(positions.size())}, positions);
  return Tensor(device == Device::cpu() ? array : array.to(device));
}

Tensor sinusoidal_table(int64_t positions, int64_t width, DType dtype) {
  check(positions >= 0 && width >= 1,
        "positions: need a width of at least 1, got {} positions of width {}", positions, width);
  std::vector<double> table(static_cast<size_t>(positions * width));
  for (int64_t c = 0; c < width; ++c) {
    const int64_t even = c - c % 2;
    const double length = std::pow(10000.0, static_cast<double>(even) / static_cast<double>(width));
    for (int64_t p = 0; p < positions; ++p) {
      const double angle = static_cast<double>(p) / length;
      table[static_cast<size_t>(p * width + c)] = c % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return cast(Tensor::of<double>({positions, width}, table), dtype);
}

SinusoidalPositions::SinusoidalPositions(int64_t maximum_length, int64_t width)
    : maximum_length(maximum_length),
      exact_table_(sinusoidal_table(maximum_length, width, kFloat64)),
      table_(cast(exact_table_, kFloat32)) {}

Tensor SinusoidalPositions::operator()(const Tensor& positions, DType dtype) const {
  check_positions(positions, maximum_length);
  if (dtype == kFloat32) return embedding(table_, positions);
  return cast(embedding(exact_table_, positions), dtype);
}

void SinusoidalPositions::move_tables(Device device) {
  exact_table_ = exact_table_.to(device);
  table_ = table_.to(device);
}

LearnedPositions::LearnedPositions(int64_t maximum_length, int64_t width)
    : maximum_length(maximum_length),
      weight(*this, "weight", normal({maximum_length, width}, 0, 0.02), {.decay = false}) {}

Tensor LearnedPositions::operator()(const Tensor& positions) const {
  check_positions(positions, maximum_length);
  return embedding(weight, positions);
}

}  // namespace gs::nn
