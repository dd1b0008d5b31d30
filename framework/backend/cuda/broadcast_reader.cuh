#pragma once

#include <algorithm>

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
  }

  // No pack crosses a row, and those that are read as a whole lie at multiples of their size.
  bool allows_packs(int64_t size) const {
    if (layout_.rank == 1) return true;
    if (layout_.inner_size() % size != 0) return false;
    if (layout_.inner_stride() == 0) return true;
    return std::all_of(layout_.strides.begin(), layout_.strides.begin() + layout_.rank - 1,
                       [&](int64_t stride) { return stride % size == 0; });
  }

  template <int kSize>
  __device__ Pack<T, kSize> pack_at(int64_t first) const {
    if (dense_) return load_pack<T, kSize>(data_ + first);
    if (data_ == nullptr) return repeated<kSize>(number_);
    const int64_t row = first / layout_.inner_size();
    const T* const place = data_ + layout_.offset_of_row(row);
    if (layout_.inner_stride() == 0) return repeated<kSize>(*place);
    return load_pack<T, kSize>(place + (first - row * layout_.inner_size()));
  }

  __device__ T at(int64_t i) const {
    if (dense_) return data_[i];
    if (data_ == nullptr) return number_;
    const int64_t row = i / layout_.inner_size(), column = i - row * layout_.inner_size();
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

  OperandLayout layout_;
  const T* data_ = nullptr;  // null for a number
  T number_{};
  bool dense_ = false;
};

}  // namespace gs::backend
