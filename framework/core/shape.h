#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace gs {

// The sizes of a dense row-major array, outermost first; rank 0 is a scalar with one element.
// Sizes may be 0. At most kMaxRank dimensions; negative sizes and products beyond int64 are
// refused.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  int64_t elements() const { return elements_; }
  int64_t operator[](int dimension) const { return sizes_[static_cast<size_t>(dimension)]; }
  // The size of a dimension that may count from the end (-1 is the last one).
  int64_t size(int64_t dimension) const;
  // A copy with one size changed.
  Shape with(int dimension, int64_t size) const;

  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  operator std::span<const int64_t>() const { return {begin(), end()}; }

  bool operator==(const Shape& other) const;
  std::string text() const;  // "[2, 3]"

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
  int64_t elements_ = 1;
};

// A dimension in [-rank, rank) counted from the front; `operation` names the caller in the error.
int normalize_dimension(const char* operation, int64_t dimension, int rank);

// The same for a list, sorted; repeated dimensions are refused. An empty list means all of them.
std::vector<int> normalize_dimensions(const char* operation, std::span<const int64_t> dimensions,
                                      int rank);

// The shape to which both broadcast, by NumPy's rule: aligned at the last dimension, equal or 1.
Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b);

// The rows that an operation over one dimension sees: `outer` blocks of `length` elements,
// each `inner` apart in memory. For the last dimension inner is 1.
struct Rows {
  int64_t outer = 1, length = 1, inner = 1;

  static Rows of_dimension(const Shape& shape, int dimension);
  static Rows of_last_dimension(const Shape& shape);
  int64_t count() const { return outer * inner; }
};

}  // namespace gs

template <>
struct fmt::formatter<gs::Shape> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(const gs::Shape& value, Context& context) const {
    const std::string text = value.text();
    return std::copy(text.begin(), text.end(), context.out());
  }
};
