#include "framework/core/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"

namespace gs {

Shape::Shape(std::initializer_list<int64_t> sizes)
    : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const int64_t> sizes) {
  check(sizes.size() <= kMaxRank, "shape: at most {} dimensions, got {}", kMaxRank + 0,
        sizes.size());
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<int>(sizes.size());
  bool empty = false;
  for (const int64_t size : sizes) {
    check(size >= 0, "shape: sizes must not be negative, got {}", text());
    empty |= size == 0;
  }
  elements_ = empty ? 0 : 1;
  for (const int64_t size : sizes) {
    check(!__builtin_mul_overflow(elements_, size, &elements_), "shape: too many elements, got {}",
          text());
  }
}

int64_t Shape::size(int64_t dimension) const {
  return (*this)[normalize_dimension("size", dimension, rank_)];
}

Shape Shape::with(int dimension, int64_t size) const {
  std::vector<int64_t> sizes(begin(), end());
  sizes[static_cast<size_t>(dimension)] = size;
  return Shape(sizes);
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

std::string Shape::text() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

int normalize_dimension(const char* operation, int64_t dimension, int rank) {
  check(dimension >= -rank && dimension < rank, "{}: no dimension {} in rank {}; use {} to {}",
        operation, dimension, rank, -rank, rank - 1);
  return static_cast<int>(dimension < 0 ? dimension + rank : dimension);
}

std::vector<int> normalize_dimensions(const char* operation, std::span<const int64_t> dimensions,
                                      int rank) {
  std::vector<int> result;
  if (dimensions.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (const int64_t dimension : dimensions)
    result.push_back(normalize_dimension(operation, dimension, rank));
  std::sort(result.begin(), result.end());
  const auto repeated = std::adjacent_find(result.begin(), result.end());
  check(repeated == result.end(), "{}: dimension {} is given twice", operation,
        repeated == result.end() ? 0 : *repeated);
  return result;
}

Shape broadcast_shapes(const char* operation, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> sizes(static_cast<size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t y = i <= b.rank() ? b[b.rank() - i] : 1;
    check(x == y || x == 1 || y == 1, "{}: shapes do not broadcast, got {} and {}", operation, a,
          b);
    sizes[static_cast<size_t>(rank - i)] = x == 1 ? y : x;
  }
  return Shape(sizes);
}

Rows Rows::of_dimension(const Shape& shape, int dimension) {
  Rows rows;
  for (int i = 0; i < dimension; ++i) rows.outer *= shape[i];
  rows.length = shape[dimension];
  for (int i = dimension + 1; i < shape.rank(); ++i) rows.inner *= shape[i];
  return rows;
}

Rows Rows::of_last_dimension(const Shape& shape) { return of_dimension(shape, shape.rank() - 1); }

}  // namespace gs
