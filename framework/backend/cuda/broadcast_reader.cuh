#pragma once

#include "framework/backend/convert.h"
#include "framework/backend/cuda/map.cuh"
#include "framework/backend/operand.h"

namespace gs::backend {

// A number rounded to an element type.
template <typename T>
T element_from(double number) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16(static_cast<float>(number));
  } else {
    return convert<T>(number);
  }
}

// Reads an operand for map() at the shape of the result: a number, an array of that shape, or one
// that broadcasts to it. Which of them is the same for all threads.
template <typename T>
class BroadcastReader {
 public:
  using Type = T;

  BroadcastReader(const Operand& operand, const Shape& shape)
      : layout_(operand.array() == nullptr ? Shape() : operand.array()->shape(), shape) {
    if (operand.array() == nullptr) {
      number_ = element_from<T>(operand.number());
      return;
    }
    data_ = elements_of<T>(*operand.array());
    dense_ = operand.array()->elements() == shape.elements();
    aligned_ = layout_.inner_size() % kPackSize<T> == 0;
    for (size_t d = 0; d + 1 < static_cast<size_t>(layout_.rank); ++d)
      aligned_ = aligned_ && layout_.strides[d] % kPackSize<T> == 0;
  }

  template <int kSize>
  __device__ Pack<T, kSize> pack_at(int64_t first) const {
    if (dense_) return load_pack<T, kSize>(data_ + first);
    if (data_ == nullptr) return repeated<kSize>(number_);
    const int64_t size = layout_.inner_size();
    const int64_t row = first / size, column = first - row * size;
    if (column + kSize > size) return across_rows<kSize>(row, column);
    const T* const place = data_ + layout_.offset_of_row(row);
    if (layout_.inner_stride() == 0) return repeated<kSize>(*place);
    if (aligned_) return load_pack<T, kSize>(place + column);
    Pack<T, kSize> pack;
#pragma unroll
    for (int i = 0; i < kSize; ++i) pack.values[i] = place[column + i];
    return pack;
  }

  __device__ T at(int64_t i) const {
    if (data_ == nullptr) return number_;
    const int64_t size = layout_.inner_size();
    const int64_t row = i / size, column = i - row * size;
    return data_[layout_.offset_of_row(row) + column * layout_.inner_stride()];
  }

 private:
  template <int kSize>
  __device__ static Pack<T, kSize> repeated(T value) {
    Pack<T, kSize> pack;
#pragma unroll
    for (int i = 0; i < kSize; ++i) pack.values[i] = value;
    return pack;
  }

  template <int kSize>
  __device__ Pack<T, kSize> across_rows(int64_t row, int64_t column) const {
    Pack<T, kSize> pack;
    int64_t offset = layout_.offset_of_row(row);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      pack.values[i] = data_[offset + column * layout_.inner_stride()];
      if (++column < layout_.inner_size()) continue;
      column = 0;
      if (i + 1 < kSize) offset = layout_.offset_of_row(++row);
    }
    return pack;
  }

  OperandLayout layout_;
  const T* data_ = nullptr;  // null for a number
  T number_{};
  bool dense_ = false;
  bool aligned_ = false;  // whether packs that cross no row lie at multiples of their size
};

}  // namespace gs::backend
