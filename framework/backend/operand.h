#pragma once

#include <algorithm>
#include <array>

#include "framework/backend/array.h"

namespace gs::backend {

// An operand of an elementwise operation: an array that broadcasts to the result, or a number,
// which is rounded to the element type. The array must outlive it.
class Operand {
 public:
  Operand(const Array& array) : array_(&array) {}
  Operand(double number) : number_(number) {}

  const Array* array() const { return array_; }  // null for a number
  double number() const { return number_; }

 private:
  const Array* array_ = nullptr;
  double number_ = 0;
};

// How an array is read at the shape to which it broadcasts: sizes and steps, outermost first, with
// neighbouring dimensions merged where one step serves both. The innermost step is 0 or 1.
struct OperandLayout {
  OperandLayout(const Shape& from, const Shape& to);

  int rank = 1;
  std::array<int64_t, Shape::kMaxRank> sizes{1}, strides{1};

  constexpr int64_t inner_size() const { return sizes[static_cast<size_t>(rank - 1)]; }
  constexpr int64_t inner_stride() const { return strides[static_cast<size_t>(rank - 1)]; }
  // Where the innermost row of that number starts.
  constexpr int64_t offset_of_row(int64_t row) const {
    int64_t offset = 0;
    for (int d = rank - 2; d >= 0; --d) {
      const size_t dimension = static_cast<size_t>(d);
      const int64_t rest = row / sizes[dimension];
      offset += (row - rest * sizes[dimension]) * strides[dimension];
      row = rest;
    }
    return offset;
  }
};

// Gives the elements of an operand in the order of the result, a tile at a time, where they lie or
// in a buffer: one loop over dense memory then serves every shape.
template <typename T>
class TileReader {
 public:
  static constexpr int64_t kTile = 1024;

  // From the element number `first` of the result on.
  TileReader(const Operand& operand, const Shape& shape, int64_t first);

  // The next elements, at most kTile of them; good until the next call.
  const T* next(int64_t count);

 private:
  void start_row_if_at_end();
  void fill_buffer(int64_t count);

  OperandLayout layout_;
  const T* data_ = nullptr;
  int64_t row_ = 0, column_ = 0;  // in the innermost dimension
  alignas(64) T buffer_[kTile];
};

template <typename T>
TileReader<T>::TileReader(const Operand& operand, const Shape& shape, int64_t first)
    : layout_(operand.array() == nullptr ? Shape() : operand.array()->shape(), shape) {
  if (operand.array() != nullptr) data_ = operand.array()->data<T>();
  row_ = first / layout_.inner_size();
  column_ = first % layout_.inner_size();
  if (layout_.rank == 1 && layout_.inner_stride() == 0)
    std::fill_n(buffer_, std::min(kTile, layout_.inner_size()),
                data_ == nullptr ? static_cast<T>(operand.number()) : *data_);
}

template <typename T>
const T* TileReader<T>::next(int64_t count) {
  const int64_t stride = layout_.inner_stride();
  if (layout_.rank == 1 && stride == 0) return buffer_;
  start_row_if_at_end();
  if (stride == 1 && column_ + count <= layout_.inner_size()) {
    const T* const tile = data_ + layout_.offset_of_row(row_) + column_;
    column_ += count;
    return tile;
  }
  fill_buffer(count);
  return buffer_;
}

template <typename T>
void TileReader<T>::start_row_if_at_end() {
  if (column_ < layout_.inner_size()) return;
  column_ = 0;
  ++row_;
}

template <typename T>
void TileReader<T>::fill_buffer(int64_t count) {
  const int64_t size = layout_.inner_size();
  for (int64_t done = 0; done < count;) {
    start_row_if_at_end();
    const int64_t part = std::min(count - done, size - column_);
    const T* const row = data_ + layout_.offset_of_row(row_);
    if (layout_.inner_stride() == 1) {
      std::copy_n(row + column_, part, buffer_ + done);
    } else {
      std::fill_n(buffer_ + done, part, *row);
    }
    column_ += part;
    done += part;
  }
}

}  // namespace gs::backend
